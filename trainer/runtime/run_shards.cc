#include "trainer/runtime/run_shards.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/runtime/state_check.h"

namespace pliant {
namespace {

Result<ShardSums> RunShard(Program& program, ShardFolder& folder, const ShardTask& task,
                           std::span<std::byte> buffers) {
  if (task.kind == TickKind::kEvaluate) {
    return task.samples.empty() ? ShardSums{} : program.ComputeShard(task, {}, {});
  }
  CHECK(folder.next_shard() == task.shard, "shards are computed in the order of their blocks");
  if (task.samples.empty()) return ShardSums{};
  return program.ComputeShard(task, folder.Leaf(),
                              task.shard == 0 ? buffers : std::span<std::byte>());
}

}  // namespace

Status RunShards(Program& program, ShardFolder& folder, const TickWork& work,
                 const std::atomic<bool>& abandoned,
                 const std::function<void(const HeldNode&)>& on_node, TickOutput& output) {
  if (work.check_state) output.state_checksum = StateChecksum(program.State());
  std::shared_ptr<std::vector<std::byte>> buffers;
  if (work.kind == TickKind::kTrain && !work.tasks.empty() && work.tasks.front().shard == 0) {
    buffers = std::make_shared<std::vector<std::byte>>(program.info().buffer_bytes);
  }
  const Status status = [&]() -> Status {
    for (const ShardTask& task : work.tasks) {
      if (abandoned) return Fail(ErrorCode::kCancelled, "the tick was given up");
      ASSIGN_OR_RETURN(
          const ShardSums sums,
          RunShard(program, folder, task, buffers ? std::span(*buffers) : std::span<std::byte>()));
      output.sums.push_back(sums);
      if (task.kind == TickKind::kEvaluate) continue;
      const NodeIndex node = task.samples.empty() ? folder.FoldEmpty() : folder.Fold();
      if (node != 0) on_node(folder.finished().back());
    }
    return {};
  }();
  if (work.kind == TickKind::kTrain) output.nodes = folder.sums();
  if (buffers && !output.sums.empty()) output.buffers = {.owner = buffers, .view = *buffers};
  return status;
}

}  // namespace pliant
