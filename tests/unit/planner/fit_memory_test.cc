#include "operator/planner/fit_memory.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

namespace pliant::planner {
namespace {

TEST(FitMemory, ComparesWhatIsNewAndNothingElse) {
  std::vector<NodeView> nodes = Nodes(3, 8);
  for (std::uint64_t i = 0; i < 3; ++i) nodes[i].version = {i + 1};
  const auto views = [&] {
    std::vector<const NodeView*> all;
    for (const NodeView& node : nodes) all.push_back(&node);
    return all;
  };
  PodNeeds in_zone{.resources = {.gpus = 1}};
  in_zone.node_selector = {{"zone", "a"}};
  const PodNeeds anywhere{.resources = {.gpus = 1}};
  using enum Obstacle;
  FitMemory memory;

  memory.BeginPlan();
  EXPECT_EQ(memory.Compare("a", in_zone, views()), (std::vector{kLabels, kLabels, kLabels}));
  EXPECT_EQ(memory.comparisons(), 3u);
  memory.BeginPlan();
  memory.Compare("a", in_zone, views());
  EXPECT_EQ(memory.comparisons(), 3u) << "nothing was compared again";
  EXPECT_EQ(memory.Compare("a", anywhere, views()), (std::vector{kNone, kNone, kNone}));
  EXPECT_EQ(memory.comparisons(), 6u) << "the other template was compared";

  // One node is labelled, another one is removed.
  nodes[1].labels["zone"] = "a";
  nodes[1].version = {4};
  nodes.erase(nodes.begin());
  memory.BeginPlan();
  EXPECT_EQ(memory.Compare("a", in_zone, views()), (std::vector{kNone, kLabels}));
  EXPECT_EQ(memory.comparisons(), 8u);
  // The other template was not used in the last plan, so it is compared again.
  memory.BeginPlan();
  memory.Compare("a", anywhere, views());
  EXPECT_EQ(memory.comparisons(), 10u);
}

TEST(FitMemory, NodesThatNobodyCountsAreComparedEachTime) {
  std::vector<NodeView> nodes = Nodes(1, 8);
  const std::vector<const NodeView*> views = {&nodes[0], nullptr};
  const PodNeeds needs{.resources = {.gpus = 1}};
  FitMemory memory;
  for (const std::uint64_t comparisons : {1, 2}) {
    memory.BeginPlan();
    memory.Compare("a", needs, views);
    EXPECT_EQ(memory.comparisons(), comparisons);
  }
}

TEST(FitMemory, SharedNeedsAreComparedOnlyWithWhatIsNew) {
  std::vector<NodeView> nodes = Nodes(2, 8);
  for (std::uint64_t i = 0; i < 2; ++i) nodes[i].version = {i + 1};
  PodNeeds in_zone{.resources = {.gpus = 1}};
  in_zone.node_selector = {{"zone", "a"}};
  const SharedNeeds asks{std::make_shared<const PodNeeds>(in_zone)};
  FitMemory memory;
  const auto suit_some = [&] {
    memory.BeginPlan();
    return memory.SuitSome("a", asks, std::vector<const NodeView*>{&nodes[0], nullptr, &nodes[1]});
  };

  EXPECT_FALSE(suit_some()) << "where there is no node, nothing suits";
  EXPECT_FALSE(suit_some());
  EXPECT_EQ(memory.comparisons(), 2u) << "nothing was compared again";

  nodes[1].labels["zone"] = "a";
  nodes[1].version = {3};
  EXPECT_TRUE(suit_some());
  EXPECT_TRUE(suit_some());
  EXPECT_EQ(memory.comparisons(), 3u) << "the node that changed";

  memory.BeginPlan();
  memory.BeginPlan();
  EXPECT_TRUE(suit_some());
  EXPECT_EQ(memory.comparisons(), 5u) << "forgotten after a plan without these needs";

  nodes[1].version = {};
  EXPECT_TRUE(suit_some());
  nodes[1].labels.clear();
  EXPECT_FALSE(suit_some()) << "a node of unknown version is compared each time";
}

}  // namespace
}  // namespace pliant::planner
