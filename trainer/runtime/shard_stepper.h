#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/operation.h"
#include "trainer/runtime/tick_side.h"

namespace pliant {

// One learner's part of a tick, shard after shard. For training, `accumulator` has begun with the
// work's blocks and buckets. Over once abandoned.
class ShardStepper final : public Operation {
 public:
  // All of these outlive it.
  ShardStepper(ProgramView& program, GradientAccumulator& accumulator, const TickWork& work,
               const TickControl& control, TickSide& side);
  ~ShardStepper() override;

  std::optional<Work> Next() override;
  void Done(Result<ShardSums> sums) override;
  bool over() const override;

  // Called once it is over: moves the finished part to `output`, and returns how it ended.
  // kCancelled: it was abandoned before the last shard was done.
  Status End(TickOutput& output);

 private:
  class BlockParts;

  const ShardTask& task() const { return work_.tasks[next_]; }
  void Begin();
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
  const TickWork& work_;
  const TickControl& control_;
  TickSide& side_;

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
};

}  // namespace pliant
