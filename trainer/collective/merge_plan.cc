#include "trainer/collective/merge_plan.h"

#include <algorithm>

#include "base/check.h"

namespace pliant::cuda {

MergePlan PlanMerges(const ShardMap& map) {
  CHECK(IsComplete(map), "the nodes cover all shards");
  MergePlan plan;
  for (const auto& blocks : map.blocks_of_rank)
    for (const ShardBlock& block : blocks) plan.nodes.push_back(NodeOf(map.logical_shards, block));
  std::ranges::sort(plan.nodes, {},
                    [&](NodeIndex node) { return BlockOf(map.logical_shards, node).first; });
  std::vector<NodeIndex> stack;
  for (const NodeIndex node : plan.nodes) {
    stack.push_back(node);
    plan.depth = std::max(plan.depth, static_cast<int>(stack.size()));
    std::uint8_t additions = 0;
    while (stack.size() >= 2 && stack.back() == stack[stack.size() - 2] + 1 &&
           stack.back() % 2 == 1) {
      stack.pop_back();
      stack.back() /= 2;
      ++additions;
    }
    plan.additions.push_back(additions);
  }
  CHECK(stack.size() == 1 && stack.front() == kRootNode, "all nodes end in the root");
  return plan;
}

}  // namespace pliant::cuda
