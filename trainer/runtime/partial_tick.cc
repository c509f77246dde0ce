#include "trainer/runtime/partial_tick.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace pliant {

const std::vector<int>& PartialTick::Ask(const std::vector<int>& own) {
  asked_.clear();
  std::ranges::copy_if(own, std::back_inserter(asked_),
                       [this](int shard) { return !IsFinished(shard); });
  shards_kept_ = own.size() - asked_.size();
  return asked_;
}

void PartialTick::Add(TickKind kind, int logical_shards, const TickOutput& output) {
  CHECK(output.shards.size() <= asked_.size(), "no more shards than were asked for");
  results_.resize(static_cast<std::size_t>(logical_shards));
  for (std::size_t i = 0; i < output.shards.size(); ++i) {
    results_[static_cast<std::size_t>(asked_[i])] = output.shards[i];
    if (kind == TickKind::kEvaluate) {
      const ShardBlock shard{.first = asked_[i], .count = 1};
      nodes_.push_back({.node = NodeOf(logical_shards, shard), .sum = {}});
    }
  }
  std::ranges::copy(output.nodes, std::back_inserter(nodes_));
  if (output.buffers.owner != nullptr) buffers_ = output.buffers;
}

void PartialTick::Clear() {
  results_.clear();
  nodes_.clear();
  buffers_ = {};
}

bool PartialTick::IsFinished(int shard) const {
  const auto index = static_cast<std::size_t>(shard);
  return index < results_.size() && results_[index].has_value();
}

const ShardResult& PartialTick::ResultOf(int shard) const {
  CHECK(IsFinished(shard), "a computed tick has all of its shards");
  return *results_[static_cast<std::size_t>(shard)];
}

std::vector<NodeIndex> PartialTick::node_indices() const {
  std::vector<NodeIndex> indices;
  for (const HeldNode& node : nodes_) indices.push_back(node.node);
  return indices;
}

}  // namespace pliant
