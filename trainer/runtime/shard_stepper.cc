#include "trainer/runtime/shard_stepper.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "base/check.h"
#include "trainer/checkpoint/checksum.h"
#include "trainer/collective/float_environment.h"
#include "trainer/protocol/spot_check.h"
#include "trainer/protocol/state_check.h"

namespace pliant {

// Hands out the buckets of a block while its last shard is computed.
class ShardStepper::BlockParts final : public GradientSink {
 public:
  BlockParts(GradientAccumulator& accumulator, const OnPart& on_part, DeviceTick* device)
      : accumulator_(accumulator),
        on_part_(on_part),
        device_(device),
        node_(accumulator.block_node()) {}

  void OnReady(ElementRange range) override {
    accumulator_.AccumulateReady(range, [this](std::uint32_t bucket) { HandOut(bucket); });
  }
  void Finish() {
    accumulator_.AccumulateRest([this](std::uint32_t bucket) { HandOut(bucket); });
  }

 private:
  void HandOut(std::uint32_t bucket) {
    if (device_ == nullptr) return on_part_({.node = node_, .bucket = bucket});
    device_->HandOut(node_, bucket, accumulator_.buckets().RangeOf(bucket), on_part_);
  }

  GradientAccumulator& accumulator_;
  const OnPart& on_part_;
  DeviceTick* const device_;
  const HeldNode node_;
};

ShardStepper::ShardStepper(ProgramView& program, GradientAccumulator& accumulator,
                           BytePool& buffers, const TickWork& work, TickControl& control,
                           OnPart on_part, DeviceTick* device)
    : program_(program),
      accumulator_(accumulator),
      buffers_(buffers),
      work_(work),
      control_(control),
      on_part_(std::move(on_part)),
      device_(device) {}

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
  if (device_ != nullptr && work_.kind == TickKind::kTrain) device_->Begin();
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
    written_ = buffers_.Take(program_.info().buffer_bytes);
    std::ranges::fill(written_.view, std::byte{0});
  }
  waited_ = program_.data_wait();
  PassEmptyShards();
}

ShardWork ShardStepper::WorkOn(const ShardTask& task) {
  ShardWork work{.task = &task, .gradient = {}, .buffers = {}, .left = {}, .sums = {}};
  if (device_ != nullptr) {
    sums_follow_ = false;
    work.sums = device_->SumsOf(next_);
    work.sums_follow = &sums_follow_;
  }
  return work;
}

std::optional<Work> ShardStepper::WorkOnOther() {
  try {
    MemorySource& memory = device_ == nullptr ? HeapMemory() : device_->device().memory();
    checked_gradient_ = FloatBuffer(program_.info().gradient_elements, memory);
  } catch (const std::bad_alloc&) {
    checked_ = true;  // without a result: a check is not worth the training
    return std::nullopt;
  }
  ShardWork work = WorkOn(*work_.other_checked);
  work.gradient = checked_gradient_.view();
  if (work.task->shard == 0) {
    checked_buffers_ = buffers_.Take(program_.info().buffer_bytes);
    work.buffers = checked_buffers_.view;
  }
  return work;
}

ShardWork ShardStepper::WorkOnTask() {
  const int shard = task().shard;
  ShardWork work = WorkOn(task());
  if (task().kind == TickKind::kEvaluate) return work;
  CHECK(accumulator_.next_shard() == shard, "shards are computed in the order of their blocks");
  added_ = false;
  work.gradient = accumulator_.Leaf();
  const bool has_parts = device_ == nullptr || !work_.device_step || work_.device_step->rounds;
  if (accumulator_.completes_block() && has_parts)
    parts_ = std::make_unique<BlockParts>(accumulator_, on_part_, device_);
  // The whole leaf is digested before any of it is added to the sums.
  const bool checked = work_.own_checked == shard;
  if (const auto left = accumulator_.left_sibling(); !left.empty() && !checked) {
    CHECK(shard > 0, "shard 0 is nobody's right sibling");
    work.left = left;
    work.added = &added_;
    return work;
  }
  if (shard == 0) work.buffers = written_.view;
  // A device measures the whole leaf before any of it is added to the sums.
  const bool measured_first = device_ != nullptr && work_.measure;
  if (work_.parts_early && !measured_first && !checked) work.sink = parts_.get();
  return work;
}

void ShardStepper::Done(Result<ShardSums> sums) {
  if (!sums) {
    status_ = std::unexpected(std::move(sums).error());
  } else if (next_ == work_.tasks.size()) {
    Check(checked_gradient_.view(), checked_buffers_.view, *sums);
    if (device_ != nullptr && sums_follow_) device_->SumsFollow(next_);
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
    if (device_ != nullptr && work_.measure) device_->Measure(next_, accumulator_.Leaf());
    if (parts_) std::exchange(parts_, nullptr)->Finish();
    accumulator_.Accumulate(std::exchange(added_, false));
    if (device_ == nullptr && work_.measure) result.gradient_square = accumulator_.leaf_square();
  }
  if (device_ != nullptr && sums_follow_) device_->SumsFollow(next_);
  output_.shards.push_back(result);
  ++next_;
  if (device_ == nullptr) return control_.done.store(next_, std::memory_order_relaxed);
  device_->device().Then([&control = control_, done = next_](const Status&) {
    control.done.store(done, std::memory_order_relaxed);
  });
}

void ShardStepper::Check(std::span<const float> gradient, std::span<const std::byte> buffers,
                         const ShardSums& sums) {
  checked_ = true;
  if (device_ != nullptr) return device_->Check(next_, gradient, buffers, sums);
  output_.checked_shard = DigestOfShard(ChecksumOf(std::as_bytes(gradient)), buffers, sums);
}

Status ShardStepper::End(TickOutput& output) {
  output_.data_wait = program_.data_wait() - waited_;
  const bool whole = next_ == work_.tasks.size();
  if (work_.kind == TickKind::kTrain) {
    if (device_ == nullptr) {
      accumulator_.CopySums(output_.nodes);
    } else {
      device_->End(accumulator_, whole, output_);
    }
  }
  if (!output_.shards.empty()) output_.buffers = {.owner = written_.owner, .view = written_.view};
  output = std::move(output_);
  if (status_ && !whole) {
    return Fail(ErrorCode::kCancelled, "the tick was aborted");
  }
  return status_;
}

}  // namespace pliant
