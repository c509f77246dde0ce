#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/cuda/cuda_events.h"
#include "trainer/cuda/cuda_kernels.h"
#include "trainer/cuda/cuda_memory.h"
#include "trainer/cuda/nccl_communicator.h"

namespace pliant {

// One sum over the ranks of a communicator: NCCL moves the bytes, our kernels add them. The
// program's thread adds buckets, while NCCL's thread carries out the plan.
class NcclSum {
 public:
  struct Parts {  // borrowed
    CudaMemory& memory;
    CudaEvents& events;
    CudaKernels& kernels;
    NcclCommunicator& communicator;
  };

  NcclSum(GradientRounds::Sum sum, Parts parts);

  // ---- The program's thread ----
  void Add(std::span<const HeldNode> nodes, std::uint32_t bucket);

  // ---- Any thread ----
  void WhenOver(std::function<void(Status)> done);
  bool over();
  // Looks again whether the communicator is interrupted.
  void Wake();

  // ---- NCCL's thread ----
  // Carries it out. `max_shard`: as NcclRounds::Options. An error leaves the communicator in use.
  Status Run(Duration max_shard);
  // It is over with this status, and its memory is no longer used.
  void End(const Status& status);

 private:
  using Deadline = NcclCommunicator::Deadline;

  // From now on, after all of this rank's buckets are there.
  Deadline EndOfRounds() const;
  Status InRounds();
  // Statistical: NCCL adds. A rank without nodes adds zeros.
  Status ByAllReduce();
  // Waits until the program's stream has the bucket ready.
  Status AwaitBucket(std::uint32_t bucket);
  Status Round(std::size_t round, const Deadline& deadline);
  Status Carry(std::uint32_t bucket, const ReductionPlan::Addition& addition);
  std::span<float> PlaceOf(std::uint32_t bucket, const ReductionPlan::Part& part) const;

  GradientRounds::Sum sum_;  // without its memory once it is over
  const Parts parts_;
  Duration max_shard_{};
  std::size_t held_elements_ = 0;  // between two parts that the plan holds

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_. NCCL's thread reads nodes_ without it once the first bucket is there.
  std::vector<HeldNode> nodes_;
  std::vector<CudaEvent> ready_;  // by bucket; nullptr: not added yet
  Status queued_;                 // of the program's side
  bool over_ = false;
  Status result_;
  std::function<void(Status)> when_over_;
};

}  // namespace pliant
