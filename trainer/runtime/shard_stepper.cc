#include "trainer/runtime/shard_stepper.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "trainer/collective/float_environment.h"
#include "trainer/protocol/state_check.h"

namespace pliant {

// Hands out the buckets of a block while its last shard is computed.
class ShardStepper::BlockParts final : public GradientSink {
 public:
  BlockParts(GradientAccumulator& accumulator, const OnPart& on_part)
      : accumulator_(accumulator), on_part_(on_part), node_(accumulator.block_node()) {}

  void OnReady(ElementRange range) override {
    accumulator_.AccumulateReady(range, [this](std::uint32_t bucket) { HandOut(bucket); });
  }
  void Finish() {
    accumulator_.AccumulateRest([this](std::uint32_t bucket) { HandOut(bucket); });
  }

 private:
  void HandOut(std::uint32_t bucket) { on_part_({.node = node_, .bucket = bucket}); }

  GradientAccumulator& accumulator_;
  const OnPart& on_part_;
  const HeldNode node_;
};

ShardStepper::ShardStepper(ProgramView& program, GradientAccumulator& accumulator,
                           BytePool& buffers, const TickWork& work, TickControl& control,
                           OnPart on_part)
    : program_(program),
      accumulator_(accumulator),
      buffers_(buffers),
      work_(work),
      control_(control),
      on_part_(std::move(on_part)) {}

ShardStepper::~ShardStepper() = default;

bool ShardStepper::over() const {
  return !status_ || next_ == work_.tasks.size() || control_.abandoned;
}

std::optional<Work> ShardStepper::Next() {
  if (!std::exchange(begun_, true)) Begin();
  if (over()) return std::nullopt;
  return WorkOnTask();
}

void ShardStepper::Begin() {
  if (work_.check_state) {
    Result<std::uint64_t> checksum = StateChecksum(program_.State());
    if (!checksum) {
      status_ = std::unexpected(std::move(checksum).error());
      return;
    }
    output_.state_checksum = *checksum;
  }
  output_.shards.reserve(work_.tasks.size());
  if (work_.kind == TickKind::kTrain && !work_.tasks.empty() && work_.tasks.front().shard == 0) {
    written_ = buffers_.Take(program_.info().buffer_bytes);
    std::ranges::fill(written_.view, std::byte{0});
  }
  waited_ = program_.data_wait();
  PassEmptyShards();
}

ShardWork ShardStepper::WorkOnTask() {
  const int shard = task().shard;
  ShardWork work{.task = &task(), .gradient = {}, .buffers = {}, .left = {}};
  if (task().kind == TickKind::kEvaluate) return work;
  CHECK(accumulator_.next_shard() == shard, "shards are computed in the order of their blocks");
  added_ = false;
  work.gradient = accumulator_.Leaf();
  if (accumulator_.completes_block()) parts_ = std::make_unique<BlockParts>(accumulator_, on_part_);
  if (const auto left = accumulator_.left_sibling(); !left.empty()) {
    CHECK(shard > 0, "shard 0 is nobody's right sibling");
    work.left = left;
    work.added = &added_;
    return work;
  }
  if (shard == 0) work.buffers = written_.view;
  if (work_.parts_early) work.sink = parts_.get();
  return work;
}

void ShardStepper::Done(Result<ShardSums> sums) {
  if (sums) {
    Finish(*sums);
    PassEmptyShards();
  } else {
    status_ = std::unexpected(std::move(sums).error());
  }
  parts_.reset();
}

void ShardStepper::PassEmptyShards() {
  while (!over() && task().samples.empty()) {
    std::ranges::fill(WorkOnTask().gradient, 0.0F);  // an evaluation has none
    Finish({});
  }
}

void ShardStepper::Finish(const ShardSums& sums) {
  const FloatEnvironment environment;  // this may be the program's thread
  ShardResult result{.sums = sums};
  if (task().kind == TickKind::kTrain) {
    if (parts_) std::exchange(parts_, nullptr)->Finish();
    accumulator_.Accumulate(std::exchange(added_, false));
    if (work_.measure) result.gradient_square = accumulator_.leaf_square();
  }
  output_.shards.push_back(result);
  ++next_;
  control_.done.store(next_, std::memory_order_relaxed);
}

Status ShardStepper::End(TickOutput& output) {
  output_.data_wait = program_.data_wait() - waited_;
  if (work_.kind == TickKind::kTrain) accumulator_.CopySums(output_.nodes);
  if (!output_.shards.empty()) output_.buffers = {.owner = written_.owner, .view = written_.view};
  output = std::move(output_);
  if (status_ && next_ < work_.tasks.size()) {
    return Fail(ErrorCode::kCancelled, "the tick was aborted");
  }
  return status_;
}

}  // namespace pliant
