#include "trainer/collective/shard_folder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

constexpr std::size_t kElements = 40;

// A leaf whose sums show which shards are in them: shard v is 2^v.
void Fill(std::span<float> leaf, int shard) {
  std::ranges::fill(leaf, static_cast<float>(1 << shard));
}

TEST(ShardFolder, FinishesTheBlocksOfEveryMap) {
  constexpr int kShards = 16;
  ShardFolder folder(kShards, kElements, kShards);
  for (int world = 1; world <= kShards + 1; ++world) {
    const ShardMap map = AssignShards(kShards, world);
    for (int rank = 0; rank < world; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(world));
      const auto& blocks = map.blocks_of_rank[static_cast<std::size_t>(rank)];
      folder.Begin(blocks);
      std::vector<int> order;
      std::vector<NodeIndex> reported;
      while (!folder.done()) {
        order.push_back(folder.next_shard());
        Fill(folder.Leaf(), folder.next_shard());
        if (const NodeIndex node = folder.Fold(); node != 0) reported.push_back(node);
      }
      EXPECT_EQ(order, map.ShardsOf(rank));
      ASSERT_EQ(folder.finished().size(), blocks.size());
      ASSERT_EQ(reported.size(), blocks.size());
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const HeldNode& node = folder.finished()[i];
        EXPECT_EQ(node.node, NodeOf(kShards, blocks[i]));
        EXPECT_EQ(node.node, reported[i]);
        const float want = static_cast<float>(((1 << blocks[i].count) - 1) << blocks[i].first);
        for (const float value : node.sum.view()) EXPECT_EQ(value, want);
      }
    }
  }
}

TEST(ShardFolder, AddsLeftBeforeRight) {
  // In fp32 (1e8 + 1) + (-1e8 + 1) is 0, while any other order of these four gives 1 or 2.
  const float leaves[] = {1e8F, 1.0F, -1e8F, 1.0F};
  ShardFolder folder(4, 1, 4);
  const ShardBlock all{.first = 0, .count = 4};
  folder.Begin({&all, 1});
  for (const float leaf : leaves) {
    folder.Leaf()[0] = leaf;
    folder.Fold();
  }
  EXPECT_EQ(folder.finished().front().sum.view()[0], 0.0F);
}

TEST(ShardFolder, CountsAnEmptyShardAsZeros) {
  ShardFolder folder(2, kElements, 2);
  const ShardBlock all{.first = 0, .count = 2};
  folder.Begin({&all, 1});
  std::ranges::fill(folder.Leaf(), -0.0F);
  folder.Fold();
  EXPECT_EQ(folder.FoldEmpty(), kRootNode);
  for (const float value : folder.finished().front().sum.view()) {
    EXPECT_EQ(value, 0.0F);
    EXPECT_FALSE(std::signbit(value)) << "-0 + 0 is 0: the addition is really done";
  }
}

TEST(ShardFolder, TakesNewBuffersOnlyForThoseStillRead) {
  ShardFolder folder(8, kElements, 8);
  const ShardBlock block{.first = 0, .count = 2};
  const auto run = [&] {
    folder.Begin({&block, 1});
    for (int i = 0; i < 2; ++i) {
      Fill(folder.Leaf(), i);
      folder.Fold();
    }
    return folder.finished().front().sum;
  };
  const FloatBuffer under_way = run();  // as a send queue holds it after an aborted tick
  for (int i = 0; i < 3; ++i) EXPECT_NE(run().owner(), under_way.owner());
  for (const float value : under_way.view()) EXPECT_EQ(value, 3.0F);
}

TEST(BufferPool, AllocatesOnlyWhatIsReserved) {
  BufferPool pool(100, 2);
  for (int i = 0; i < 5; ++i) {
    const FloatBuffer a = pool.Take();
    const FloatBuffer b = pool.Take();
    EXPECT_NE(a.owner(), b.owner());
    EXPECT_EQ(a.view().size(), 100U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.view().data()) % 64, 0U);
  }
  EXPECT_EQ(pool.allocated(), 2U);
  const FloatBuffer a = pool.Take();
  const FloatBuffer b = pool.Take();
  const FloatBuffer c = pool.Take();
  EXPECT_EQ(pool.allocated(), 3U);
}

}  // namespace
}  // namespace pliant
