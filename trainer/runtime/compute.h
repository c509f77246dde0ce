#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/checkpoint/state_slice.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/tree.h"
#include "trainer/protocol/hang_detector.h"
#include "trainer/protocol/program.h"

namespace pliant {

class ProgramThread;

// One learner's part of one tick.
struct TickWork {
  TickKind kind = TickKind::kTrain;
  std::uint64_t step = 0;          // optimizer steps committed before it
  int logical_shards = 1;          // leaves of the tree
  std::vector<ShardBlock> blocks;  // of its rank
  std::vector<ShardTask> tasks;    // the shards of the blocks, in order
  bool check_state = false;        // TickOutput::state_checksum is wanted
  BucketSizes buckets = Reduction::kBucketSizes;
  bool parts_early = true;  // others wait for a block's buckets; else they come when all are done
};

// A bucket of a block's sum. The others may still be written to.
struct NodePart {
  HeldNode node;
  std::uint32_t bucket = 0;
};

// What is finished of it.
struct TickOutput {
  std::vector<ShardSums> sums;  // of the first tasks, in their order
  std::vector<HeldNode> nodes;  // of training: each of these shards is in one of them
  Bytes buffers;                // that shard 0 wrote; empty when it is not among them
  std::optional<std::uint64_t> state_checksum;  // of the state that the tick began with
  Duration data_wait{};                         // for samples
};

struct CommitWork {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  FloatBuffer gradient;
  Bytes buffers;
  ShardSums sums;
};

// Runs a Program away from the event loop, one operation after the other in the order asked, so
// that every operation sees the state that the ones before it left. Only a copy of the state is
// made beside what comes after it, up to the next change of the state. Callbacks run on the event
// loop, never within the call, and not after the object is destroyed.
class Compute {
 public:
  using OnPart = std::function<void(const NodePart&)>;
  using DoneTick = std::function<void(Result<TickOutput>)>;
  using DoneStatus = std::function<void(Status)>;
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Compute() = default;
  virtual const ProgramInfo& info() const = 0;
  // Names, types and shapes of the program's state. Its bytes are not for others to touch.
  virtual const StateDict& state_shape() const = 0;
  // What the program is at. None: it waits, or what runs needs no more of it.
  virtual std::optional<ProgramCall> call() const = 0;

  // In training, `on_part` is called for every bucket of every block of shards as it is finished,
  // be it while the block's last shard is still computed; `done` comes last.
  virtual void RunTick(TickWork work, OnPart on_part, DoneTick done) = 0;
  // Gives up a RunTick that is queued or runs: none of its callbacks is called any more. It ends
  // after the shard under way; then `rest` gets what is finished of it, or nothing if there is no
  // such RunTick.
  virtual void AbortTick(std::function<void(TickOutput)> rest) = 0;

  virtual void Commit(CommitWork work, DoneStatus done) = 0;
  virtual void Evaluated(EvaluationTask evaluation, DoneStatus done) = 0;
  // As Program's, of the state that the change which was done last left.
  virtual bool wants_end() const = 0;
  // Of the whole state, or of one slice of it.
  virtual void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) = 0;
  virtual void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) = 0;
};

// The program of `thread`, whose gradients `folder` sums. `loop`, `thread` and the folder's memory
// outlive it. Destroying it stops the thread: it waits for the shard or the commit under way.
std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, ProgramThread& thread,
                                            GradientAccumulator accumulator);

}  // namespace pliant
