#include "trainer/runtime/run_shards.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "trainer/protocol/state_check.h"

namespace pliant {
namespace {

using OnPart = std::function<void(NodePart)>;

// Hands out the buckets of a block while its last shard is computed.
class BlockParts final : public GradientSink {
 public:
  BlockParts(ShardFolder& folder, const OnPart& on_part)
      : folder_(folder),
        on_part_(on_part),
        node_(folder.block_node()),
        buckets_missing_(folder.buckets().count()) {}

  void OnReady(ElementRange range) override {
    folder_.FoldReady(range, [this](std::uint32_t bucket) { HandOut(bucket); });
  }
  void Finish() {
    folder_.FoldRest([this](std::uint32_t bucket) { HandOut(bucket); });
  }

 private:
  void HandOut(std::uint32_t bucket) {
    --buckets_missing_;
    on_part_({.node = node_, .bucket = bucket, .last = buckets_missing_ == 0});
  }

  ShardFolder& folder_;
  const OnPart& on_part_;
  const HeldNode node_;
  std::uint32_t buckets_missing_;
};

Result<ShardSums> Train(Program& program, ShardFolder& folder, const ShardTask& task,
                        std::span<std::byte> buffers, bool parts_early, const OnPart& on_part) {
  CHECK(folder.next_shard() == task.shard, "shards are computed in the order of their blocks");
  std::optional<BlockParts> parts;
  if (folder.completes_block()) parts.emplace(folder, on_part);
  ShardSums sums;
  bool added = false;
  if (task.samples.empty()) {
    std::ranges::fill(folder.Leaf(), 0.0F);
  } else if (const auto left = folder.left_sibling(); !left.empty()) {
    CHECK(task.shard > 0, "shard 0 is nobody's right sibling");
    ASSIGN_OR_RETURN(sums, program.AddShard(task, left, folder.Leaf(), added));
  } else {
    ASSIGN_OR_RETURN(sums, program.ComputeShard(task, folder.Leaf(),
                                                task.shard == 0 ? buffers : std::span<std::byte>(),
                                                parts && parts_early ? &*parts : nullptr));
  }
  if (parts) parts->Finish();
  folder.Fold(added);
  return sums;
}

Result<ShardSums> Evaluate(Program& program, const ShardTask& task) {
  if (task.samples.empty()) return ShardSums{};
  return program.ComputeShard(task, {}, {}, nullptr);
}

}  // namespace

Status RunShards(Program& program, ShardFolder& folder, BytePool& buffers, const TickWork& work,
                 TickControl& control, const std::function<void(NodePart)>& on_part,
                 TickOutput& output) {
  if (work.check_state) output.state_checksum = StateChecksum(program.State());
  output.sums.reserve(work.tasks.size());
  MutableBytes written;
  if (work.kind == TickKind::kTrain && !work.tasks.empty() && work.tasks.front().shard == 0) {
    written = buffers.Take(program.info().buffer_bytes);
    std::ranges::fill(written.view, std::byte{0});
  }
  const Duration waited = program.data_wait();
  const Status status = [&]() -> Status {
    for (const ShardTask& task : work.tasks) {
      if (control.abandoned) return Fail(ErrorCode::kCancelled, "the tick was given up");
      control.begun.fetch_add(1, std::memory_order_relaxed);
      ASSIGN_OR_RETURN(const ShardSums sums,
                       task.kind == TickKind::kEvaluate
                           ? Evaluate(program, task)
                           : Train(program, folder, task, written.view, work.parts_early, on_part));
      output.sums.push_back(sums);
    }
    return {};
  }();
  output.data_wait = program.data_wait() - waited;
  if (work.kind == TickKind::kTrain) folder.CopySums(output.nodes);
  if (!output.sums.empty()) output.buffers = {.owner = written.owner, .view = written.view};
  return status;
}

}  // namespace pliant
