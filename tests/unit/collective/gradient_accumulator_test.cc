#include "trainer/collective/gradient_accumulator.h"

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

// Fills a leaf so that a sum shows which shards are in it: shard v has the value 2^v.
void Fill(std::span<float> leaf, int shard) {
  std::ranges::fill(leaf, static_cast<float>(1 << shard));
}

// The parameter `adds`: whether the writer of a leaf adds it to its left sibling where possible.
class GradientAccumulatorOfMaps : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, GradientAccumulatorOfMaps, testing::Bool());

TEST_P(GradientAccumulatorOfMaps, FinishesTheirBlocks) {
  constexpr int kShards = 16;
  GradientAccumulator accumulator(kElements, kShards);
  for (int world = 1; world <= kShards + 1; ++world) {
    const ShardMap map = AssignShards(kShards, world);
    for (int rank = 0; rank < world; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(world));
      const auto& blocks = map.blocks_of_rank[static_cast<std::size_t>(rank)];
      accumulator.Begin(kShards, blocks, kOneBucket);
      std::vector<int> order;
      std::vector<NodeIndex> reported;
      while (!accumulator.done()) {
        order.push_back(accumulator.next_shard());
        Fill(accumulator.Leaf(), accumulator.next_shard());
        const std::span<const float> left = accumulator.left_sibling();
        EXPECT_EQ(!left.empty(),
                  accumulator.next_shard() % 2 == 1 && !accumulator.completes_block());
        const bool added = GetParam() && !left.empty();
        if (added) AddFloats(left, accumulator.Leaf(), accumulator.Leaf());
        if (const NodeIndex node = accumulator.Accumulate(added); node != 0)
          reported.push_back(node);
      }
      EXPECT_EQ(order, map.ShardsOf(rank));
      ASSERT_EQ(accumulator.finished().size(), blocks.size());
      ASSERT_EQ(reported.size(), blocks.size());
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const HeldNode& node = accumulator.finished()[i];
        EXPECT_EQ(node.node, NodeOf(kShards, blocks[i]));
        EXPECT_EQ(node.node, reported[i]);
        const float want = static_cast<float>(((1 << blocks[i].count) - 1) << blocks[i].first);
        for (const float value : node.sum.view()) EXPECT_EQ(value, want);
      }
    }
  }
}

TEST(GradientAccumulator, AddsLeftBeforeRight) {
  // In fp32 (1e8 + 1) + (-1e8 + 1) is 0, while any other order of these four gives 1 or 2.
  const float leaves[] = {1e8F, 1.0F, -1e8F, 1.0F};
  GradientAccumulator accumulator(1, 4);
  const ShardBlock all{.first = 0, .count = 4};
  accumulator.Begin(4, {&all, 1}, kOneBucket);
  for (const float leaf : leaves) {
    accumulator.Leaf()[0] = leaf;
    accumulator.Accumulate();
  }
  EXPECT_EQ(accumulator.finished().front().sum.view()[0], 0.0F);
}

TEST(GradientAccumulator, CountsAnEmptyShardAsZeros) {
  GradientAccumulator accumulator(kElements, 2);
  const ShardBlock all{.first = 0, .count = 2};
  accumulator.Begin(2, {&all, 1}, kOneBucket);
  std::ranges::fill(accumulator.Leaf(), -0.0F);
  accumulator.Accumulate();
  std::ranges::fill(accumulator.Leaf(), 0.0F);
  EXPECT_EQ(accumulator.Accumulate(), kRootNode);
  for (const float value : accumulator.finished().front().sum.view()) {
    EXPECT_EQ(value, 0.0F);
    EXPECT_FALSE(std::signbit(value)) << "-0 + 0 is 0: the addition is really done";
  }
}

// Only final elements are added, and a bucket is reported when its last element is final.
TEST(GradientAccumulator, FoldsABucketAsSoonAsItIsReady) {
  GradientAccumulator accumulator(kElements, 4);
  const ShardBlock all{.first = 0, .count = 4};
  accumulator.Begin(4, {&all, 1}, {.first = 8, .rest = 16});  // [32, 40), [16, 32), [0, 16)
  for (int shard = 0; shard < 3; ++shard) {
    EXPECT_FALSE(accumulator.completes_block());
    Fill(accumulator.Leaf(), shard);
    EXPECT_EQ(accumulator.Accumulate(), 0U);
  }
  ASSERT_TRUE(accumulator.completes_block());
  Fill(accumulator.Leaf(), 3);
  const HeldNode node = accumulator.block_node();
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
    accumulator.AccumulateReady(step.said,
                                [&](std::uint32_t bucket) { finished.push_back(bucket); });
    EXPECT_EQ(finished, step.finished) << "at " << step.said.begin;
    for (const std::uint32_t bucket : finished) {
      const ElementRange range = accumulator.buckets().RangeOf(bucket);
      for (const float value : node.sum.view().subspan(range.begin, range.size)) {
        EXPECT_EQ(value, 15.0F);
      }
    }
  }
  // If the shard fails, the sums before it must be unchanged.
  std::vector<HeldNode> sums;
  accumulator.CopySums(sums);
  ASSERT_EQ(sums.size(), 2U);
  for (const float value : sums[0].sum.view()) EXPECT_EQ(value, 3.0F);
  for (const float value : sums[1].sum.view()) EXPECT_EQ(value, 4.0F);
  finished.clear();
  accumulator.AccumulateRest([&](std::uint32_t bucket) { finished.push_back(bucket); });
  EXPECT_EQ(finished, std::vector<std::uint32_t>{2});
  EXPECT_EQ(accumulator.Accumulate(), kRootNode);
  for (const float value : accumulator.finished().front().sum.view()) EXPECT_EQ(value, 15.0F);
}

TEST(GradientAccumulatorDeathTest, RefusesWhatIsSaidTwice) {
  GradientAccumulator accumulator(kElements, 1);
  const ShardBlock all{.first = 0, .count = 1};
  const auto nothing = [](std::uint32_t) {};
  accumulator.Begin(1, {&all, 1}, kOneBucket);
  accumulator.AccumulateReady({.begin = 0, .size = 30}, nothing);
  EXPECT_DEATH(accumulator.AccumulateReady({.begin = 20, .size = 20}, nothing), "final once");
  EXPECT_DEATH(accumulator.AccumulateReady({.begin = 30, .size = 11}, nothing),
               "elements of the gradient");
}

TEST(GradientAccumulator, TakesNewBuffersOnlyForThoseStillRead) {
  GradientAccumulator accumulator(kElements, 8);
  const ShardBlock block{.first = 0, .count = 2};
  const auto run = [&] {
    accumulator.Begin(8, {&block, 1}, kOneBucket);
    for (int i = 0; i < 2; ++i) {
      Fill(accumulator.Leaf(), i);
      accumulator.Accumulate();
    }
    return accumulator.finished().front().sum;
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

// The fraction of the pages of `memory` that are resident.
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

// Larger than any block that the C library keeps for reuse, so its pages come from the kernel.
constexpr std::size_t kLargeElements = std::size_t{10} << 20;

TEST(GradientAccumulator, HoldsTheMemoryThatSoManyShardsNeed) {
  SharedMemory shared;
  for (MemorySource* const memory : {&HeapMemory(), static_cast<MemorySource*>(&shared)}) {
    SCOPED_TRACE(memory == &shared ? "shared" : "of the heap");
    GradientAccumulator accumulator(kLargeElements, 8, *memory);
    ASSERT_TRUE(accumulator.Populate(2));
    EXPECT_EQ(GradientAccumulator::BytesFor(kLargeElements, 2), 2 * kLargeElements * sizeof(float));
    const ShardBlock two{.first = 0, .count = 2};
    accumulator.Begin(8, {&two, 1}, kOneBucket);
    EXPECT_EQ(ResidentPart(accumulator.Leaf()), 1.0) << "before the first write";
    const ShardBlock all{.first = 0, .count = 8};
    accumulator.Begin(8, {&all, 1}, kOneBucket);
    EXPECT_LT(ResidentPart(accumulator.Leaf()), 0.5) << "memory that only more shards need";
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
  // No memory can be mapped there: an error, and no crash.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const closed = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  ::munmap(closed, page);
  EXPECT_FALSE(Populate({static_cast<std::byte*>(closed), page}));
}

}  // namespace
}  // namespace pliant
