#pragma once

#include "trainer/collective/tree.h"
#include "trainer/data/schedule.h"

namespace pliant {

enum class Reproducibility {
  kBitwise,      // the same bits for any number of learners
  kStatistical,  // equal up to rounding is enough
};

// The division of a tick's work among the ranks of a membership.
//
// Bitwise: the tick's V shards, each computed by itself and added along the tree over V.
// Statistical: a rank's share of the samples is one batch and one leaf, in a tree that is just
// large enough for the ranks; the result depends on their number, but is still the same bits on all
// of them.
class WorkSplit {
 public:
  WorkSplit(const Schedule& schedule, Reproducibility reproducibility)
      : schedule_(schedule), reproducibility_(reproducibility) {}

  std::uint64_t seed() const { return schedule_.spec().seed; }  // of the job
  bool bitwise() const { return reproducibility_ == Reproducibility::kBitwise; }
  ShardMap MapOf(Tick tick, int world_size) const;
  // The task of a shard of MapOf, or of a map over the same shards.
  ShardTask TaskOf(Tick tick, int world_size, int shard) const;
  // The number of its samples.
  std::uint64_t SamplesOf(Tick tick, int world_size, int shard) const;

 private:
  // The part of the tick's samples that a shard has.
  struct Share {
    int part = 0;
    int parts = 1;
    bool empty = false;  // it only completes the tree
  };
  Share ShareOf(Tick tick, int world_size, int shard) const;
  int LeavesFor(Tick tick, int world_size) const;

  const Schedule& schedule_;
  const Reproducibility reproducibility_;
};

}  // namespace pliant
