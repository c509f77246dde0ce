#include "operator/planner/fit_memory.h"

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

}  // namespace
}  // namespace pliant::planner
