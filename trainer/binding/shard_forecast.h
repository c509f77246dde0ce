#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/data/schedule.h"
#include "trainer/data/shard.h"

namespace pliant {

// Predicts which shards a learner will get from those that it got: they are the same in every tick
// of a membership.
class ShardForecast {
 public:
  // `parts`: the number of shards of the first tick if this learner computes all of every tick;
  // else 0.
  ShardForecast(const Schedule& schedule, int parts);

  void OnTask(const ShardTask& task);

  // The task that follows the last one after `ahead` others. None: it cannot be predicted, or the
  // training ends before it.
  std::optional<ShardTask> After(std::uint64_t ahead) const;

 private:
  struct Part {
    int shard = 0;
    int part = 0;
    int parts = 1;
    bool operator==(const Part&) const = default;
  };
  Tick TickOf(const ShardTask& task) const;
  void ComputesAll(int parts);

  const bool alone_;
  Schedule schedule_;           // of the newest task
  std::vector<Part> of_tick_;   // in the current tick, so far
  std::vector<Part> per_tick_;  // in the newest complete tick
  std::optional<Tick> tick_;    // the current tick
};

}  // namespace pliant
