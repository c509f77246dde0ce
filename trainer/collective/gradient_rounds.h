#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/communicators.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/reduction_plan.h"

namespace pliant {

// Sums gradients over the devices of several ranks, bucket by bucket, in the rounds of a
// ReductionPlan. The host only queues: bytes travel from device to device. Needs a communicator of
// these ranks.
class GradientRounds : public Communicators {
 public:
  // 16 and 64 MiB: each round costs a launch, and the first one begins early.
  static constexpr BucketSizes kBucketSizes = {.first = std::size_t{4} << 20,
                                               .rest = std::size_t{16} << 20};
  // The most nodes of a map whose plan devices carry out: a kernel adds so many.
  static constexpr std::size_t kMaxNodes = 128;

  struct Sum {
    std::shared_ptr<const ReductionPlan> plan;
    // Each rank adds up its own nodes, and the library all ranks' sums: quicker, but the order of
    // the additions is the library's. The result is the same on all ranks.
    bool all_reduce = false;
    BucketLayout buckets;
    float divisor = 1;
    FloatBuffer mean;  // the result, on the device
  };

  // ---- The program's thread, for one sum at a time ----
  virtual void Begin(Sum sum) = 0;
  // This bucket of this rank's nodes is final, behind what the program has queued. `nodes` are the
  // plan's own ones, in its order, each time. Once for each bucket, in any order.
  virtual void Add(std::span<const HeldNode> nodes, std::uint32_t bucket) = 0;

  // ---- Any thread ----
  // `done` is called on any thread, possibly at once, when the sum is complete or was given an
  // error, and its memory is no longer in use. A sum ends only when all buckets were added or the
  // communicator is aborted.
  virtual void WhenOver(std::function<void(Status)> done) = 0;
};

}  // namespace pliant
