#include "trainer/collective/merge_plan.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant::cuda {
namespace {

std::string Sum(const std::string& left, const std::string& right) {
  return "(" + left + "+" + right + ")";
}

// Executes the plan as the kernel does for one element, with symbolic values.
TEST(MergePlan, GivesThePlainTreeForEveryWorldSize) {
  for (const int shards : {1, 2, 4, 16, 64}) {
    std::vector<std::string> leaves;
    for (int shard = 0; shard < shards; ++shard) leaves.push_back(std::to_string(shard));
    const std::string want = SumTree<std::string>(leaves, Sum);
    for (int world = 1; world <= shards; ++world) {
      const MergePlan plan = PlanMerges(AssignShards(shards, world));
      ASSERT_EQ(plan.nodes.size(), plan.additions.size());
      std::vector<std::string> stack;
      std::size_t deepest = 0;
      for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        const ShardBlock block = BlockOf(shards, plan.nodes[i]);
        std::string value =
            SumTree<std::string>(std::span(leaves).subspan(static_cast<std::size_t>(block.first),
                                                           static_cast<std::size_t>(block.count)),
                                 Sum);
        for (int left = plan.additions[i]; left > 0; --left) {
          value = Sum(stack.back(), value);
          stack.pop_back();
        }
        stack.push_back(value);
        deepest = std::max(deepest, stack.size());
      }
      EXPECT_EQ(stack, std::vector{want}) << shards << " shards, world size " << world;
      EXPECT_GE(plan.depth, static_cast<int>(deepest));
    }
  }
}

}  // namespace
}  // namespace pliant::cuda
