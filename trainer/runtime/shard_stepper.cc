#include "trainer/runtime/shard_stepper.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "base/check.h"
#include "trainer/collective/float_environment.h"
#include "trainer/protocol/state_check.h"

namespace pliant {

// Hands out the buckets of a block while its last shard is computed.
class ShardStepper::BlockParts final : public GradientSink {
 public:
  BlockParts(GradientAccumulator& accumulator, TickSide& side)
      : accumulator_(accumulator), side_(side), node_(accumulator.block_node()) {}

  void OnReady(ElementRange range) override {
    accumulator_.AccumulateReady(range, [this](std::uint32_t bucket) { HandOut(bucket); });
  }
  void Finish() {
    accumulator_.AccumulateRest([this](std::uint32_t bucket) { HandOut(bucket); });
  }

 private:
  void HandOut(std::uint32_t bucket) { side_.HandOut(node_, bucket); }

  GradientAccumulator& accumulator_;
  TickSide& side_;
  const HeldNode node_;
};

ShardStepper::ShardStepper(ProgramView& program, GradientAccumulator& accumulator,
                           const TickWork& work, const TickControl& control, TickSide& side)
    : program_(program), accumulator_(accumulator), work_(work), control_(control), side_(side) {}

ShardStepper::~ShardStepper() = default;

bool ShardStepper::over() const {
  return !status_ || control_.abandoned || (next_ == work_.tasks.size() && !checking());
}

std::optional<Work> ShardStepper::Next() {
  if (!std::exchange(begun_, true)) Begin();
  if (over()) return std::nullopt;
  if (next_ < work_.tasks.size()) return WorkOnTask();
  return WorkOnOther();
}

void ShardStepper::Begin() {
  if (work_.kind == TickKind::kTrain) side_.Begin();
  if (work_.check_state) {
    Result<StateDigest> digest = DigestOf(program_.State());
    if (!digest) {
      status_ = std::unexpected(std::move(digest).error());
      return;
    }
    output_.state = *std::move(digest);
  }
  output_.shards.reserve(work_.tasks.size());
  if (work_.kind == TickKind::kTrain && !work_.tasks.empty() && work_.tasks.front().shard == 0) {
    written_ = side_.TakeBuffers(program_.info().buffer_bytes);
    std::ranges::fill(written_.view, std::byte{0});
  }
  waited_ = program_.data_wait();
  PassEmptyShards();
}

std::optional<Work> ShardStepper::WorkOnOther() {
  try {
    checked_gradient_ = FloatBuffer(program_.info().gradient_elements, side_.memory());
  } catch (const std::bad_alloc&) {
    checked_ = true;  // without a result: a check is not worth the training
    return std::nullopt;
  }
  ShardWork work{.task = &*work_.other_checked, .gradient = checked_gradient_.view()};
  side_.Offer(next_, work);
  if (work.task->shard == 0) {
    checked_buffers_ = side_.TakeBuffers(program_.info().buffer_bytes);
    work.buffers = checked_buffers_.view;
  }
  return work;
}

ShardWork ShardStepper::WorkOnTask() {
  const int shard = task().shard;
  ShardWork work{.task = &task()};
  side_.Offer(next_, work);
  if (task().kind == TickKind::kEvaluate) return work;
  CHECK(accumulator_.next_shard() == shard, "shards are computed in the order of their blocks");
  added_ = false;
  work.gradient = accumulator_.Leaf();
  if (accumulator_.completes_block() && side_.hands_out())
    parts_ = std::make_unique<BlockParts>(accumulator_, side_);
  // The whole leaf is digested before any of it is added to the sums.
  const bool checked = work_.own_checked == shard;
  if (const auto left = accumulator_.left_sibling(); !left.empty() && !checked) {
    CHECK(shard > 0, "shard 0 is nobody's right sibling");
    work.left = left;
    work.added = &added_;
    return work;
  }
  if (shard == 0) work.buffers = written_.view;
  if (work_.parts_early && !side_.needs_whole_leaves() && !checked) work.sink = parts_.get();
  return work;
}

void ShardStepper::Done(Result<ShardSums> sums) {
  if (!sums) {
    status_ = std::unexpected(std::move(sums).error());
  } else if (next_ == work_.tasks.size()) {
    Check(checked_gradient_.view(), checked_buffers_.view, *sums);
  } else {
    Finish(*sums);
    PassEmptyShards();
  }
  parts_.reset();
}

void ShardStepper::PassEmptyShards() {
  while (!over() && next_ < work_.tasks.size() && task().samples.empty()) {
    WorkOnTask();
    if (task().kind == TickKind::kTrain) accumulator_.ZeroLeaf();
    Finish({});
  }
}

void ShardStepper::Finish(const ShardSums& sums) {
  const FloatEnvironment environment;  // this may be the program's thread
  ShardResult result{.sums = sums};
  if (task().kind == TickKind::kTrain) {
    if (const int shard = task().shard; work_.own_checked == shard) {
      const std::span<const std::byte> buffers = written_.view;
      Check(accumulator_.Leaf(), shard == 0 ? buffers : buffers.first(0), sums);
    }
    side_.OnLeaf(next_, accumulator_.Leaf());
    if (parts_) std::exchange(parts_, nullptr)->Finish();
    accumulator_.Accumulate(std::exchange(added_, false));
  }
  side_.OnFinished(next_++, result);
  output_.shards.push_back(result);
}

void ShardStepper::Check(std::span<const float> gradient, std::span<const std::byte> buffers,
                         const ShardSums& sums) {
  checked_ = true;
  side_.Check(next_, gradient, buffers, sums, output_);
}

Status ShardStepper::End(TickOutput& output) {
  output_.data_wait = program_.data_wait() - waited_;
  const bool whole = next_ == work_.tasks.size();
  side_.End(whole, output_);
  if (!output_.shards.empty()) output_.buffers = {.owner = written_.owner, .view = written_.view};
  output = std::move(output_);
  if (status_ && !whole) {
    return Fail(ErrorCode::kCancelled, "the tick was aborted");
  }
  return status_;
}

}  // namespace pliant
