#include "trainer/collective/tree_levels.h"

#include <map>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/collective/tree_sum.h"

namespace pliant {
namespace {

using testing::ElementsAre;

std::string Sum(const std::string& left, const std::string& right) {
  return "(" + left + "+" + right + ")";
}

// The sum that the kernels compute for one element, with symbolic values: the shards' numbers.
std::string SumOf(int shards, std::span<const NodeIndex> nodes) {
  std::vector<std::string> leaves;
  for (int shard = 0; shard < shards; ++shard) leaves.push_back(std::to_string(shard));
  const TreeLevels levels = LevelsOf(shards, nodes);
  std::map<int, std::string> waiting;
  std::string node;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ShardBlock block = BlockOf(shards, nodes[i]);
    node = SumTree<std::string>(std::span(leaves).subspan(static_cast<std::size_t>(block.first),
                                                          static_cast<std::size_t>(block.count)),
                                Sum);
    for (int level = levels.first[i]; level < levels.last[i]; ++level)
      node = Sum(waiting.at(level), node);
    waiting[levels.last[i]] = node;
    EXPECT_LT(levels.last[i], levels.count);
  }
  return node;
}

TEST(TreeLevels, GiveThePlainTreeForEveryWorldSize) {
  for (const int shards : {1, 2, 4, 16, 64}) {
    std::vector<std::string> leaves;
    for (int shard = 0; shard < shards; ++shard) leaves.push_back(std::to_string(shard));
    const std::string want = SumTree<std::string>(leaves, Sum);
    for (int world = 1; world <= shards; ++world) {
      EXPECT_EQ(SumOf(shards, NodesOf(AssignShards(shards, world))), want)
          << shards << " shards, world size " << world;
    }
  }
}

TEST(TreeLevels, EndInANodeBelowTheRoot) {
  // The nodes of shards 0-1, 2 and 3, of eight.
  const std::vector<NodeIndex> nodes = {4, 10, 11};
  EXPECT_EQ(SumOf(8, nodes), "((0+1)+(2+3))");
  const TreeLevels levels = LevelsOf(8, nodes);
  EXPECT_THAT(levels.first, ElementsAre(1, 0, 0));
  EXPECT_THAT(levels.last, ElementsAre(1, 0, 2));
  EXPECT_EQ(levels.count, 3);
}

TEST(TreeLevels, CountFromTheLowestNode) {
  EXPECT_EQ(LevelsOf(64, std::vector<NodeIndex>{2, 3}),
            (TreeLevels{.first = {0, 0}, .last = {0, 1}, .count = 2}));
}

}  // namespace
}  // namespace pliant
