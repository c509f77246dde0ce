#include "trainer/collective/tree.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

constexpr int kShardCounts[] = {1, 2, 4, 8, 16, 32, 64};

TEST(Tree, NumbersNodesLikeAHeap) {
  EXPECT_EQ(NodeOf(8, {.first = 0, .count = 8}), kRootNode);
  EXPECT_EQ(NodeOf(8, {.first = 4, .count = 4}), 3U);
  EXPECT_EQ(NodeOf(8, {.first = 5, .count = 1}), 13U);
  EXPECT_EQ(NodeOf(1, {.first = 0, .count = 1}), kRootNode);
  for (const int shards : kShardCounts)
    for (NodeIndex node = 1; node < 2 * static_cast<NodeIndex>(shards); ++node)
      EXPECT_EQ(NodeOf(shards, BlockOf(shards, node)), node);
}

TEST(Tree, AddsLeftAndRight) {
  const std::vector<std::string> leaves = {"a", "b", "c", "d", "e", "f", "g", "h"};
  const auto add = [](const std::string& a, const std::string& b) { return "(" + a + b + ")"; };
  EXPECT_EQ(SumTree<std::string>(leaves, add), "(((ab)(cd))((ef)(gh)))");
  EXPECT_EQ(SumTree<std::string>(std::span(leaves).first(1), add), "a");
}

std::vector<int> SizesOf(const ShardMap& map) {
  std::vector<int> sizes;
  for (int rank = 0; rank < map.world_size(); ++rank)
    sizes.push_back(static_cast<int>(map.ShardsOf(rank).size()));
  return sizes;
}

TEST(AssignShards, GivesEveryShardToOneRankEvenly) {
  for (const int shards : kShardCounts) {
    for (int world = 1; world <= shards + 3; ++world) {
      SCOPED_TRACE(std::to_string(shards) + " shards, world size " + std::to_string(world));
      const ShardMap map = AssignShards(shards, world);
      ASSERT_EQ(map.world_size(), world);
      EXPECT_TRUE(IsComplete(map));
      const std::vector<int> sizes = SizesOf(map);
      EXPECT_LE(sizes.front() - sizes.back(), 1);
      EXPECT_TRUE(std::ranges::is_sorted(sizes, std::greater{}));
      std::vector<int> all;
      for (int rank = 0; rank < world; ++rank) {
        const std::vector<int> of_rank = map.ShardsOf(rank);
        EXPECT_TRUE(std::ranges::is_sorted(of_rank));
        all.insert(all.end(), of_rank.begin(), of_rank.end());
        const auto& blocks = map.blocks_of_rank[static_cast<std::size_t>(rank)];
        for (std::size_t i = 1; i < blocks.size(); ++i)
          EXPECT_LT(blocks[i].count, blocks[i - 1].count) << "larger blocks first, no two alike";
      }
      std::ranges::sort(all);
      std::vector<int> want(static_cast<std::size_t>(shards));
      std::iota(want.begin(), want.end(), 0);
      EXPECT_EQ(all, want);
    }
  }
}

// The table of docs/concepts/exactness.md: the time of a step is that of the busiest rank.
TEST(AssignShards, GivesTheBusiestOfEightTheseSharesOfTheMean) {
  struct Case {
    int world;
    double of_8, of_16, of_32;  // its shards, divided by the mean
  };
  for (const Case& c : {Case{1, 1, 1, 1}, Case{2, 1, 1, 1}, Case{3, 1.125, 1.125, 1.03125},
                        Case{4, 1, 1, 1}, Case{5, 1.25, 1.25, 1.09375}, Case{6, 1.5, 1.125, 1.125},
                        Case{7, 1.75, 1.3125, 1.09375}, Case{8, 1, 1, 1}}) {
    const auto busiest = [&](int shards) {
      const int most = SizesOf(AssignShards(shards, c.world)).front();
      return static_cast<double>(most) * c.world / shards;
    };
    EXPECT_EQ(busiest(8), c.of_8) << c.world;
    EXPECT_EQ(busiest(16), c.of_16) << c.world;
    EXPECT_EQ(busiest(32), c.of_32) << c.world;
  }
}

TEST(AssignShards, LaysOutBlocksBySize) {
  const ShardMap want{.logical_shards = 16,
                      .blocks_of_rank = {{{0, 4}, {12, 2}}, {{4, 4}, {14, 1}}, {{8, 4}, {15, 1}}}};
  EXPECT_EQ(AssignShards(16, 3), want);
}

TEST(AssignShards, LeavesRanksBeyondTheShardsEmpty) {
  EXPECT_EQ(SizesOf(AssignShards(4, 6)), (std::vector<int>{1, 1, 1, 1, 0, 0}));
}

TEST(ShardMap, IsCompleteOnlyIfItCoversTheTreeOnce) {
  EXPECT_TRUE(
      IsComplete({.logical_shards = 4, .blocks_of_rank = {{{2, 2}}, {}, {{0, 1}, {1, 1}}}}));
  const ShardMap bad[] = {
      {.logical_shards = 4, .blocks_of_rank = {}},
      {.logical_shards = 4, .blocks_of_rank = {{{0, 2}}}},
      {.logical_shards = 4, .blocks_of_rank = {{{0, 4}}, {{0, 1}}}},
      {.logical_shards = 4, .blocks_of_rank = {{{0, 1}, {1, 2}, {3, 1}}}},
      {.logical_shards = 4, .blocks_of_rank = {{{0, 3}, {3, 1}}}},
      {.logical_shards = 4, .blocks_of_rank = {{{0, 8}}}},
      {.logical_shards = 4, .blocks_of_rank = {{{0, 2}, {2, 0}, {2, 2}}}},
      {.logical_shards = 4, .blocks_of_rank = {{{-4, 4}, {0, 4}}}},
  };
  for (const ShardMap& map : bad) EXPECT_FALSE(IsComplete(map));
}

// A learner with p blocks sends (p + 1)/2 times what it would send in a ring.
TEST(AssignShards, CostsLittleMoreThanARing) {
  const auto ratio = [](int shards, int world) {
    std::size_t most = 0;
    for (const auto& blocks : AssignShards(shards, world).blocks_of_rank)
      most = std::max(most, blocks.size());
    return (static_cast<double>(most) + 1) / 2;
  };
  const struct {
    int shards;
    double worst;
  } kWorst[] = {{1, 1.0}, {2, 1.0}, {4, 1.0}, {8, 1.5}, {16, 1.5}, {32, 2.0}};
  for (const auto& [shards, worst] : kWorst) {
    double seen = 0;
    for (int world = 1; world <= shards; ++world) {
      seen = std::max(seen, ratio(shards, world));
      if (2 * world >= shards || (world & (world - 1)) == 0) {
        EXPECT_EQ(ratio(shards, world), 1.0) << shards << " shards, world size " << world;
      }
    }
    EXPECT_EQ(seen, worst) << shards << " shards";
  }
}

}  // namespace
}  // namespace pliant
