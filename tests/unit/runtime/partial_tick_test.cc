#include "trainer/runtime/partial_tick.h"

#include <cstddef>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

constexpr int kShardsOfTick = 8;

// The first `count` of the requested shards are computed; their sums identify them.
TickOutput OutputOf(const std::vector<int>& asked, std::size_t count,
                    const std::vector<NodeIndex>& nodes) {
  TickOutput output;
  for (std::size_t i = 0; i < count; ++i) {
    output.shards.push_back({.sums = {.samples = 1, .loss = static_cast<double>(asked[i])}});
  }
  for (const NodeIndex node : nodes) output.nodes.push_back({.node = node, .sum = FloatBuffer(1)});
  return output;
}
NodeIndex Leaf(int shard) { return NodeOf(kShardsOfTick, {.first = shard, .count = 1}); }
NodeIndex Pair(int first) { return NodeOf(kShardsOfTick, {.first = first, .count = 2}); }

TEST(PartialTick, AsksForWhatIsNotFinished) {
  PartialTick partial;
  const std::vector<int> own{4, 5, 6};
  EXPECT_EQ(partial.Ask(own), own);
  EXPECT_EQ(partial.shards_kept(), 0U);
  partial.Add(TickKind::kTrain, kShardsOfTick, OutputOf(own, 2, {Pair(4)}));
  EXPECT_TRUE(partial.IsFinished(4));
  EXPECT_TRUE(partial.IsFinished(5));
  EXPECT_FALSE(partial.IsFinished(6));
  EXPECT_FALSE(partial.IsFinished(0));
  EXPECT_FALSE(partial.IsFinished(99)) << "no shard of the tick";
  EXPECT_EQ(partial.ResultOf(5).sums.loss, 5);

  // The next membership assigns other shards to this learner.
  EXPECT_EQ(partial.Ask({0, 1, 4, 5}), (std::vector<int>{0, 1}));
  EXPECT_EQ(partial.shards_kept(), 2U);
  partial.Add(TickKind::kTrain, kShardsOfTick, OutputOf({0, 1}, 2, {Pair(0)}));
  EXPECT_EQ(partial.ResultOf(0).sums.loss, 0);
  EXPECT_EQ(partial.ResultOf(1).sums.loss, 1);
  EXPECT_EQ(partial.ResultOf(4).sums.loss, 4) << "its earlier result stays";
  EXPECT_EQ(partial.node_indices(), (std::vector<NodeIndex>{Pair(4), Pair(0)}));
}

TEST(PartialTick, NothingIsLeftWhenAllIsKept) {
  PartialTick partial;
  partial.Ask({2, 3});
  partial.Add(TickKind::kTrain, kShardsOfTick, OutputOf({2, 3}, 2, {Pair(2)}));
  EXPECT_TRUE(partial.Ask({2, 3}).empty());
  EXPECT_EQ(partial.shards_kept(), 2U);
  partial.Add(TickKind::kTrain, kShardsOfTick, {});
  EXPECT_EQ(partial.node_indices(), std::vector<NodeIndex>{Pair(2)});
}

TEST(PartialTick, AskingForNothingForgetsHowManyWereKept) {
  PartialTick partial;
  partial.Ask({2});
  partial.Add(TickKind::kTrain, kShardsOfTick, OutputOf({2}, 1, {Leaf(2)}));
  partial.Ask({2});
  ASSERT_EQ(partial.shards_kept(), 1U);
  partial.Ask({});
  EXPECT_EQ(partial.shards_kept(), 0U);
  EXPECT_TRUE(partial.IsFinished(2));
}

TEST(PartialTick, AnEvaluationHasItsShardsAsNodesWithoutASum) {
  PartialTick partial;
  partial.Ask({4, 5, 6});
  partial.Add(TickKind::kEvaluate, kShardsOfTick, OutputOf({4, 5, 6}, 2, {}));
  EXPECT_EQ(partial.node_indices(), (std::vector<NodeIndex>{Leaf(4), Leaf(5)}));
  for (const HeldNode& node : partial.nodes()) EXPECT_FALSE(node.sum);
}

TEST(PartialTick, KeepsTheBuffersOfShardZero) {
  PartialTick partial;
  partial.Ask({0});
  TickOutput output = OutputOf({0}, 1, {Leaf(0)});
  output.buffers.owner = std::make_shared<const int>(1);
  const std::weak_ptr<const void> watch = output.buffers.owner;
  partial.Add(TickKind::kTrain, kShardsOfTick, output);
  output = {};
  EXPECT_FALSE(watch.expired());
  partial.Ask({0, 1});
  partial.Add(TickKind::kTrain, kShardsOfTick, OutputOf({1}, 1, {Leaf(1)}));
  EXPECT_EQ(partial.buffers().owner, watch.lock())
      << "an output without buffers does not remove them";
  partial.Clear();
  EXPECT_TRUE(watch.expired()) << "Compute may reuse them";
}

TEST(PartialTick, ClearedNothingIsFinished) {
  PartialTick partial;
  partial.Ask({0, 1});
  partial.Add(TickKind::kTrain, kShardsOfTick, OutputOf({0, 1}, 2, {Pair(0)}));
  partial.Clear();
  EXPECT_FALSE(partial.IsFinished(0));
  EXPECT_TRUE(partial.nodes().empty());
  EXPECT_EQ(partial.Ask({0, 1}), (std::vector<int>{0, 1}));
  EXPECT_EQ(partial.shards_kept(), 0U);
}

}  // namespace
}  // namespace pliant
