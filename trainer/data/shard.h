#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/batch_segments.h"
#include "trainer/data/shard_sums.h"

namespace pliant {

enum class TickKind { kTrain, kEvaluate };

// One logical shard of one tick. Every learner that computes it gets the same result, bit for bit.
struct ShardTask {
  TickKind kind = TickKind::kTrain;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  // optimizer steps committed before this tick
  int shard = 0;
  // The task is one of `parts` parts of the tick's samples: shard v of V; in Statistical mode,
  // where a shard is a learner's whole share, rank r of W.
  int part = 0;
  int parts = 1;
  std::vector<std::uint64_t>
      samples;             // indices into the training (or test) set; empty: nothing to compute
  std::uint64_t seed = 0;  // for dropout and augmentation: a hash of (job seed, epoch, step, part)
  bool last_of_kind = false;                     // as in TickPlan
  std::shared_ptr<const BatchSegments> batches;  // of the schedule that the task is from
};

// A shard as a learner has computed it.
struct ShardResult {
  ShardSums sums;
  double gradient_square = 0;  // |gradient|², in a measured tick
  bool operator==(const ShardResult&) const = default;
};

}  // namespace pliant
