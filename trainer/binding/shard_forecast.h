#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/data/schedule.h"
#include "trainer/data/shard.h"

namespace pliant {

// Guesses which parts a learner will be asked for, from those that it was asked for: they are the
// same in every tick of a membership.
class ShardForecast {
 public:
  // `parts`: of every tick, when nobody else computes any; else 0.
  ShardForecast(const Schedule& schedule, int parts);

  void OnTask(const ShardTask& task);

  // The task `ahead` tasks after the one after the last. None: it cannot be told, or the training
  // ends before.
  std::optional<ShardTask> After(std::uint64_t ahead) const;

 private:
  struct Part {
    int shard = 0;
    int part = 0;
    int parts = 1;
    bool operator==(const Part&) const = default;
  };
  Tick TickOf(const ShardTask& task) const;

  const Schedule schedule_;
  std::vector<Part> of_tick_;   // in the present tick, up to now
  std::vector<Part> per_tick_;  // in the newest complete one
  std::optional<Tick> tick_;    // the present one
};

}  // namespace pliant
