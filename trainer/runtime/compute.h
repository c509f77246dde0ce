#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/checkpoint/final_layout.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/checkpoint/state_slice.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/communicators.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/reduction_plan.h"
#include "trainer/collective/tree.h"
#include "trainer/data/noise_window.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/hang_detector.h"
#include "trainer/protocol/program.h"
#include "trainer/protocol/state_check.h"

namespace pliant {

class GradientPlace;
class ProgramThread;

// A step that is reduced on the device: only TickOutput::mean is set, and nodes only after a
// failure or an abort.
struct DeviceStep {
  float divisor = 1;  // samples in the tick
  // This rank's part in summing the gradients of all ranks. None: it computes all shards itself.
  std::shared_ptr<const ReductionPlan> rounds;
  bool all_reduce = false;  // as in GradientRounds::Sum
};

// One learner's part of one tick.
struct TickWork {
  TickKind kind = TickKind::kTrain;
  std::uint64_t step = 0;          // optimizer steps committed before it
  int logical_shards = 1;          // leaves of the tree
  std::vector<ShardBlock> blocks;  // of this learner's rank
  std::vector<ShardTask> tasks;    // the shards of the blocks, in order
  bool check_state = false;        // TickOutput::state is wanted
  bool measure = false;            // ShardResult::gradient_square is wanted
  // In host memory, TickOutput::checked_shard is wanted: of this shard of `tasks`, or of this task
  // of another rank, which is computed after them.
  std::optional<int> own_checked;
  std::optional<ShardTask> other_checked;
  BucketSizes buckets = Reduction::kBucketSizes;
  bool parts_early = true;  // hand out each finished bucket; false: when its block is done
  std::optional<DeviceStep> device_step;  // only with keeps_means()
};

// A finished bucket of a block's sum. The block's other buckets may still be written.
struct NodePart {
  HeldNode node;
  std::uint32_t bucket = 0;
};

// The finished part of a TickWork.
struct TickOutput {
  std::vector<ShardResult> shards;  // of the finished tasks: the first ones, in order
  std::vector<HeldNode> nodes;      // in training: each finished shard is in one of them
  FloatBuffer mean;                 // on the device: see DeviceStep; of rounds, once they are over
  Bytes buffers;                    // written by shard 0; empty if that is not finished
  std::optional<std::uint64_t> checked_shard;  // DigestOfShard
  std::optional<StateDigest> state;            // of the state that the tick began with
  Duration data_wait{};                        // waiting for samples
};

// The mean gradient of a step over all samples.
struct MeanGradient {
  FloatBuffer values;
  bool on_device = false;  // in memory of the program's device
};

struct CommitWork {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t schedule_step = 0;
  int doublings = 0;
  bool last_of_epoch = false;
  MeanGradient mean;
  double mean_factor = 1;  // as in CommitTask
  Bytes buffers;
  ShardSums sums;
  bool first = false;    // as in CommitTask
  bool measure = false;  // CommitOutput::gradient_square is wanted
};

// The commit of a planned step, as far as it follows from these.
inline CommitWork CommitOf(const TickPlan& plan, const ShardSums& sums) {
  return {.epoch = plan.epoch,
          .step = plan.step,
          .schedule_step = plan.schedule_step,
          .doublings = plan.doublings,
          .last_of_epoch = plan.last_of_kind,
          .mean = {},
          .mean_factor = MeanFactor(static_cast<double>(plan.samples), sums),
          .buffers = {},
          .sums = sums,
          .measure = IsMeasured(plan)};
}

// The program receives this of it. `gradient`: the mean, where the program reads it.
inline CommitTask TaskOf(const CommitWork& work, std::span<const float> gradient) {
  return {.epoch = work.epoch,
          .step = work.step,
          .schedule_step = work.schedule_step,
          .doublings = work.doublings,
          .last_of_epoch = work.last_of_epoch,
          .gradient = gradient,
          .mean_factor = work.mean_factor,
          .buffers = work.buffers.view,
          .sums = work.sums,
          .first = work.first};
}

struct CommitOutput {
  double gradient_square = 0;  // |gradient|²
};

// Runs a Program off the event loop, one operation at a time in the order of the calls, so that
// each operation sees the state that the earlier ones left. Only CopyState runs in parallel with
// later operations, up to the next one that changes the state. Callbacks run on the event loop,
// never within the call, and not after the object is destroyed.
class Compute {
 public:
  using OnPart = std::function<void(const NodePart&)>;
  using DoneTick = std::function<void(Result<TickOutput>)>;
  using DoneStatus = std::function<void(Status)>;
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Compute() = default;
  virtual const ProgramInfo& info() const = 0;
  // Names, types and shapes of the program's state. Callers must not touch its bytes.
  virtual const StateDict& state_shape() const = 0;
  // As of the program.
  virtual FinalLayout final_layout() const { return {}; }
  // The running call to the program. None: the program is idle, or its result is no longer needed.
  virtual std::optional<ProgramCall> call() const = 0;
  // Whether the mean of a step may stay on a device: see DeviceStep.
  virtual bool keeps_means() const { return false; }
  // Communicators for the exchange from device to device; nullptr if there are none.
  virtual Communicators* communicators() { return nullptr; }

  struct TickCalls {
    // In training, for each bucket of each block when it is finished, possibly while the block's
    // last shard is still being computed.
    OnPart on_part;
    // The part of this learner is over.
    DoneTick done;
    // In a DeviceStep of rounds, after `done`: they are over. Without an error the mean is there;
    // otherwise AbortTick hands out the nodes.
    DoneStatus exchanged = nullptr;
  };
  virtual void RunTick(TickWork work, TickCalls calls) = 0;
  // Aborts the queued or running RunTick: its callbacks are no longer called. It ends after the
  // current shard; then `rest` receives what is finished. If no RunTick is running, `rest` receives
  // an empty output; but after a DeviceStep that was not committed, it receives that step's nodes.
  // A communicator over which the tick exchanges gradients is aborted.
  virtual void AbortTick(std::function<void(TickOutput)> rest) = 0;

  virtual void Commit(CommitWork work, Done<CommitOutput> done) = 0;
  virtual void Evaluated(EvaluationTask evaluation, DoneStatus done) = 0;
  // Program::wishes as of the last completed change of the state.
  virtual ProgramWishes wishes() const = 0;
  // Copies the whole state, or one slice of it.
  virtual void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) = 0;
  virtual void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) = 0;

  // Ends all work, and waits for the running shard or commit. Called last. False: a device does not
  // come to an end, and may use its memory at any time: the process has to end without destructors.
  virtual bool Stop() { return true; }
};

// Runs the program of `thread`, whose gradients are at `place`. `loop` and `thread` outlive the
// result. Its destructor stops the thread: it waits for the running shard or commit.
std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, ProgramThread& thread,
                                            std::unique_ptr<GradientPlace> place);

}  // namespace pliant
