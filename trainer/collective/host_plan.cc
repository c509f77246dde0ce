#include "trainer/collective/host_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace pliant {
namespace {

// Replaces two children by their parent, until there are no such pairs left.
std::vector<HostNode> Merge(int logical_shards, const std::vector<ShardBlock>& blocks) {
  std::map<NodeIndex, std::vector<NodeIndex>> parts_of;
  for (const ShardBlock& block : blocks) {
    const NodeIndex node = NodeOf(logical_shards, block);
    parts_of[node] = {node};
  }
  // A parent's number is lower than its children's, and right children are odd: this order visits
  // the deepest first.
  for (auto right = 2 * static_cast<NodeIndex>(logical_shards) - 1; right > kRootNode; right -= 2) {
    const auto second = parts_of.find(right);
    const auto first = parts_of.find(right - 1);
    if (first == parts_of.end() || second == parts_of.end()) continue;
    std::vector<NodeIndex> parts = std::move(first->second);
    parts.insert(parts.end(), second->second.begin(), second->second.end());
    parts_of.erase(first);
    parts_of.erase(second);
    parts_of[right / 2] = std::move(parts);
  }
  std::vector<HostNode> merged;
  for (auto& [node, parts] : parts_of) {
    if (parts.size() > 1) merged.push_back({.node = node, .parts = std::move(parts)});
  }
  std::ranges::sort(merged, {},
                    [&](const HostNode& node) { return BlockOf(logical_shards, node.node).first; });
  return merged;
}

}  // namespace

HostPlan::HostPlan(const ShardMap& map, const std::vector<int>& host_of_rank)
    : logical_shards_(map.logical_shards) {
  CHECK(host_of_rank.empty() || std::ssize(host_of_rank) == map.world_size(), "all ranks");
  std::map<int, int> number_of;
  for (int rank = 0; rank < map.world_size(); ++rank) {
    const int name = host_of_rank.empty() ? rank : host_of_rank[Index(rank)];
    const int host = number_of.try_emplace(name, static_cast<int>(number_of.size())).first->second;
    host_of_rank_.push_back(host);
    if (host == std::ssize(ranks_)) {
      ranks_.emplace_back();
      first_of_host_.push_back(rank);
    }
    ranks_[Index(host)].push_back(rank);
    for (const ShardBlock& block : map.blocks_of_rank[Index(rank)])
      blocks_[NodeOf(logical_shards_, block)] = {.rank = rank};
  }
  for (const std::vector<int>& of_host : ranks_) {
    std::vector<ShardBlock> blocks;
    std::vector<int> computing;
    for (const int rank : of_host) {
      const std::vector<ShardBlock>& own = map.blocks_of_rank[Index(rank)];
      blocks.insert(blocks.end(), own.begin(), own.end());
      if (!own.empty()) computing.push_back(rank);
    }
    relays_.push_back(computing.empty() ? of_host : std::move(computing));
    merged_.push_back(Merge(map.logical_shards, blocks));
    for (const HostNode& merged : merged_.back())
      for (const NodeIndex part : merged.parts) blocks_.at(part).merged = true;
  }
}

int HostPlan::RelayOf(int rank, int piece) const {
  if (SameHost(rank, piece)) return piece;
  const std::vector<int>& relays = relays_[Index(host_of_rank_[Index(rank)])];
  return relays[Index(piece) % relays.size()];
}

std::vector<HostPlan::Input> HostPlan::InputsOf(int rank) const {
  std::vector<Input> inputs;
  for (const auto& [node, block] : blocks_)
    if (!block.merged || SameHost(rank, block.rank))
      inputs.push_back({.node = node, .rank = block.rank});
  for (const int host : first_of_host_) {
    if (SameHost(rank, host)) continue;
    for (const HostNode& merged : MergedBy(host))
      inputs.push_back({.node = merged.node, .rank = RelayOf(host, rank)});
  }
  std::ranges::sort(inputs, {}, [this](const Input& input) {
    return BlockOf(logical_shards_, input.node).first;
  });
  return inputs;
}

}  // namespace pliant
