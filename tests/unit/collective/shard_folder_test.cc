#include "trainer/collective/shard_folder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/collective/shared_memory.h"
#include "trainer/collective/tree_sum.h"

namespace pliant {
namespace {

constexpr std::size_t kElements = 40;
constexpr BucketSizes kOneBucket = {.first = kElements, .rest = kElements};

// A leaf whose sums show which shards are in them: shard v is 2^v.
void Fill(std::span<float> leaf, int shard) {
  std::ranges::fill(leaf, static_cast<float>(1 << shard));
}

// `adds`: whoever writes a leaf adds it to its left sibling, where it may.
class ShardFolderOfMaps : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, ShardFolderOfMaps, testing::Bool());

TEST_P(ShardFolderOfMaps, FinishesTheirBlocks) {
  constexpr int kShards = 16;
  ShardFolder folder(kElements, kShards);
  for (int world = 1; world <= kShards + 1; ++world) {
    const ShardMap map = AssignShards(kShards, world);
    for (int rank = 0; rank < world; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(world));
      const auto& blocks = map.blocks_of_rank[static_cast<std::size_t>(rank)];
      folder.Begin(kShards, blocks, kOneBucket);
      std::vector<int> order;
      std::vector<NodeIndex> reported;
      while (!folder.done()) {
        order.push_back(folder.next_shard());
        Fill(folder.Leaf(), folder.next_shard());
        const std::span<const float> left = folder.left_sibling();
        EXPECT_EQ(!left.empty(), folder.next_shard() % 2 == 1 && !folder.completes_block());
        const bool added = GetParam() && !left.empty();
        if (added) AddFloats(left, folder.Leaf(), folder.Leaf());
        if (const NodeIndex node = folder.Fold(added); node != 0) reported.push_back(node);
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
  ShardFolder folder(1, 4);
  const ShardBlock all{.first = 0, .count = 4};
  folder.Begin(4, {&all, 1}, kOneBucket);
  for (const float leaf : leaves) {
    folder.Leaf()[0] = leaf;
    folder.Fold();
  }
  EXPECT_EQ(folder.finished().front().sum.view()[0], 0.0F);
}

TEST(ShardFolder, CountsAnEmptyShardAsZeros) {
  ShardFolder folder(kElements, 2);
  const ShardBlock all{.first = 0, .count = 2};
  folder.Begin(2, {&all, 1}, kOneBucket);
  std::ranges::fill(folder.Leaf(), -0.0F);
  folder.Fold();
  std::ranges::fill(folder.Leaf(), 0.0F);
  EXPECT_EQ(folder.Fold(), kRootNode);
  for (const float value : folder.finished().front().sum.view()) {
    EXPECT_EQ(value, 0.0F);
    EXPECT_FALSE(std::signbit(value)) << "-0 + 0 is 0: the addition is really done";
  }
}

// Only what is final is touched, and a bucket is named when the last of its elements is.
TEST(ShardFolder, FoldsABucketAsSoonAsItIsReady) {
  ShardFolder folder(kElements, 4);
  const ShardBlock all{.first = 0, .count = 4};
  folder.Begin(4, {&all, 1}, {.first = 8, .rest = 16});  // [32, 40), [16, 32), [0, 16)
  for (int shard = 0; shard < 3; ++shard) {
    EXPECT_FALSE(folder.completes_block());
    Fill(folder.Leaf(), shard);
    EXPECT_EQ(folder.Fold(), 0U);
  }
  ASSERT_TRUE(folder.completes_block());
  Fill(folder.Leaf(), 3);
  const HeldNode node = folder.block_node();
  EXPECT_EQ(node.node, kRootNode);
  struct Step {
    ElementRange said;
    std::vector<std::uint32_t> finished;
  };
  const Step steps[] = {{{33, 7}, {}},   {{10, 10}, {}}, {{32, 1}, {0}},
                        {{20, 12}, {1}}, {{5, 0}, {}},   {{0, 3}, {}}};
  std::vector<std::uint32_t> finished;
  for (const Step& step : steps) {
    finished.clear();
    folder.FoldReady(step.said, [&](std::uint32_t bucket) { finished.push_back(bucket); });
    EXPECT_EQ(finished, step.finished) << "at " << step.said.begin;
    for (const std::uint32_t bucket : finished) {
      const ElementRange range = folder.buckets().RangeOf(bucket);
      for (const float value : node.sum.view().subspan(range.begin, range.size)) {
        EXPECT_EQ(value, 15.0F);
      }
    }
  }
  // Should the shard fail, what was summed before is as it was.
  std::vector<HeldNode> sums;
  folder.CopySums(sums);
  ASSERT_EQ(sums.size(), 2U);
  for (const float value : sums[0].sum.view()) EXPECT_EQ(value, 3.0F);
  for (const float value : sums[1].sum.view()) EXPECT_EQ(value, 4.0F);
  finished.clear();
  folder.FoldRest([&](std::uint32_t bucket) { finished.push_back(bucket); });
  EXPECT_EQ(finished, std::vector<std::uint32_t>{2});
  EXPECT_EQ(folder.Fold(), kRootNode);
  for (const float value : folder.finished().front().sum.view()) EXPECT_EQ(value, 15.0F);
}

TEST(ShardFolderDeathTest, RefusesWhatIsSaidTwice) {
  ShardFolder folder(kElements, 1);
  const ShardBlock all{.first = 0, .count = 1};
  const auto nothing = [](std::uint32_t) {};
  folder.Begin(1, {&all, 1}, kOneBucket);
  folder.FoldReady({.begin = 0, .size = 30}, nothing);
  EXPECT_DEATH(folder.FoldReady({.begin = 20, .size = 20}, nothing), "final once");
  EXPECT_DEATH(folder.FoldReady({.begin = 30, .size = 11}, nothing), "elements of the gradient");
}

TEST(ShardFolder, TakesNewBuffersOnlyForThoseStillRead) {
  ShardFolder folder(kElements, 8);
  const ShardBlock block{.first = 0, .count = 2};
  const auto run = [&] {
    folder.Begin(8, {&block, 1}, kOneBucket);
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

// How much of the pages of `memory` the kernel holds.
double ResidentPart(std::span<const float> memory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto bytes = std::as_bytes(memory);
  auto* const begin =
      const_cast<std::byte*>(bytes.data()) - reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
  const std::size_t length = static_cast<std::size_t>(bytes.data() + bytes.size() - begin);
  std::vector<unsigned char> there((length + page - 1) / page);
  EXPECT_EQ(::mincore(begin, length, there.data()), 0);
  const auto count = std::ranges::count_if(there, [](unsigned char is) { return (is & 1U) != 0; });
  return static_cast<double>(count) / static_cast<double>(there.size());
}

// Larger than what the C library ever keeps for another call: its pages are the kernel's to give.
constexpr std::size_t kLargeElements = std::size_t{10} << 20;

TEST(ShardFolder, HoldsTheMemoryThatSoManyShardsNeed) {
  SharedMemory shared;
  for (MemorySource* const memory : {&HeapMemory(), static_cast<MemorySource*>(&shared)}) {
    SCOPED_TRACE(memory == &shared ? "shared" : "of the heap");
    ShardFolder folder(kLargeElements, 8, *memory);
    ASSERT_TRUE(folder.Populate(2));
    EXPECT_EQ(ShardFolder::BytesFor(kLargeElements, 2), 2 * kLargeElements * sizeof(float));
    const ShardBlock two{.first = 0, .count = 2};
    folder.Begin(8, {&two, 1}, kOneBucket);
    EXPECT_EQ(ResidentPart(folder.Leaf()), 1.0) << "before anybody wrote there";
    const ShardBlock all{.first = 0, .count = 8};
    folder.Begin(8, {&all, 1}, kOneBucket);
    EXPECT_LT(ResidentPart(folder.Leaf()), 0.5) << "of what only more shards need";
  }
}

TEST(BufferPool, GivesOutFirstWhatHasPages) {
  BufferPool pool(kLargeElements, 3);
  ASSERT_TRUE(pool.Populate(2));
  const FloatBuffer a = pool.Take();
  const FloatBuffer b = pool.Take();
  const FloatBuffer c = pool.Take();
  EXPECT_EQ(ResidentPart(a.view()), 1.0);
  EXPECT_EQ(ResidentPart(b.view()), 1.0);
  EXPECT_LT(ResidentPart(c.view()), 0.5);
}

TEST(MemorySource, HoldsSmallMemoryToo) {
  for (const std::size_t bytes : {0U, 1U, 64U, 5000U}) {
    const auto memory = HeapMemory().Allocate(bytes);
    EXPECT_TRUE(Populate({memory.get(), bytes})) << bytes;
  }
  // Nothing is there, and nothing can be put there: an error, and no crash.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const closed = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  ::munmap(closed, page);
  EXPECT_FALSE(Populate({static_cast<std::byte*>(closed), page}));
}

}  // namespace
}  // namespace pliant
