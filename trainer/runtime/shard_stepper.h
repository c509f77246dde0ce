#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/device_tick.h"
#include "trainer/runtime/operation.h"

namespace pliant {

// Shared between the thread that computes and others.
struct TickControl {
  std::atomic<bool> abandoned = false;
  std::atomic<std::size_t> done = 0;  // number of finished tasks
};

// One learner's part of a tick, shard after shard. For training, `accumulator` has begun with the
// work's blocks and buckets; `on_part` receives each finished bucket of a block, on the thread on
// which the program reports it. The model's buffers are memory of `buffers`. Over once abandoned.
//
// With a `device` the part is computed only when that is done with what was queued; then Complete
// is called.
class ShardStepper final : public Operation {
 public:
  using OnPart = std::function<void(NodePart)>;

  // All of these outlive it.
  ShardStepper(ProgramView& program, GradientAccumulator& accumulator, BytePool& buffers,
               const TickWork& work, TickControl& control, OnPart on_part,
               DeviceTick* device = nullptr);
  ~ShardStepper() override;

  std::optional<Work> Next() override;
  void Done(Result<ShardSums> sums) override;
  bool over() const override;

  // Called once it is over: moves the finished part to `output`, and returns how it ended.
  // kCancelled: it was abandoned before the last shard was done.
  Status End(TickOutput& output);
  void Complete(TickOutput& output) const {
    if (device_ != nullptr) device_->Complete(output);
  }

 private:
  class BlockParts;

  const ShardTask& task() const { return work_.tasks[next_]; }
  void Begin();
  ShardWork WorkOn(const ShardTask& task);
  ShardWork WorkOnTask();
  std::optional<Work> WorkOnOther();
  // The task of another rank is left to be computed.
  bool checking() const { return work_.other_checked && !checked_; }
  // Finishes shards that have no samples: there is nothing to compute.
  void PassEmptyShards();
  void Finish(const ShardSums& sums);
  // The shard of the spot check has this result.
  void Check(std::span<const float> gradient, std::span<const std::byte> buffers,
             const ShardSums& sums);

  ProgramView& program_;
  GradientAccumulator& accumulator_;
  BytePool& buffers_;
  const TickWork& work_;
  TickControl& control_;
  const OnPart on_part_;
  DeviceTick* const device_;

  bool begun_ = false;
  Duration waited_{};  // the program's data_wait when this began
  MutableBytes written_;
  TickOutput output_;
  Status status_;

  // The results of another rank's task.
  FloatBuffer checked_gradient_;
  MutableBytes checked_buffers_;
  bool checked_ = false;

  // The current shard.
  std::size_t next_ = 0;               // index of its task
  std::unique_ptr<BlockParts> parts_;  // if it completes a block
  bool added_ = false;
  bool sums_follow_ = false;
};

}  // namespace pliant
