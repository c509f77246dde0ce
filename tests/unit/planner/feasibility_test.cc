#include "operator/planner/feasibility.h"

#include <gtest/gtest.h>

#include "operator/planner/sizes.h"
#include "tests/unit/planner/builders.h"

namespace pliant::planner {
namespace {

TEST(Feasibility, Tolerations) {
  const Taint taint{.key = "gpu", .value = "a100", .effect = "NoSchedule"};
  const struct {
    std::string name;
    Toleration toleration;
    bool want;
  } cases[] = {
      {"equal", {.key = "gpu", .value = "a100", .effect = "NoSchedule"}, true},
      {"every effect", {.key = "gpu", .value = "a100"}, true},
      {"another effect", {.key = "gpu", .value = "a100", .effect = "NoExecute"}, false},
      {"another value", {.key = "gpu", .value = "h100"}, false},
      {"every value", {.key = "gpu", .exists = true}, true},
      {"another key", {.key = "cpu", .exists = true}, false},
      {"every key", {.exists = true}, true},
      {"no key without Exists", {.value = "a100"}, false},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(Tolerates({each.toleration}, taint), each.want) << each.name;
  }
  EXPECT_FALSE(Tolerates({}, taint));
}

TEST(Feasibility, NodeRequirements) {
  const std::map<std::string, std::string> labels = {{"gpu", "a100"}, {"memory", "80"}};
  const struct {
    std::string name;
    NodeRequirement requirement;
    bool want;
  } cases[] = {
      {"in", {"gpu", NodeOperator::kIn, {"h100", "a100"}}, true},
      {"not among them", {"gpu", NodeOperator::kIn, {"h100"}}, false},
      {"in, but absent", {"zone", NodeOperator::kIn, {"a"}}, false},
      {"not in", {"gpu", NodeOperator::kNotIn, {"h100"}}, true},
      {"not in, but is", {"gpu", NodeOperator::kNotIn, {"a100"}}, false},
      {"not in, absent", {"zone", NodeOperator::kNotIn, {"a"}}, true},
      {"exists", {"gpu", NodeOperator::kExists, {}}, true},
      {"does not exist", {"gpu", NodeOperator::kDoesNotExist, {}}, false},
      {"absent", {"zone", NodeOperator::kDoesNotExist, {}}, true},
      {"greater", {"memory", NodeOperator::kGt, {"40"}}, true},
      {"not greater", {"memory", NodeOperator::kGt, {"80"}}, false},
      {"less", {"memory", NodeOperator::kLt, {"141"}}, true},
      {"no number", {"gpu", NodeOperator::kGt, {"40"}}, false},
      {"half a number", {"memory", NodeOperator::kGt, {"40G"}}, false},
      {"two numbers", {"memory", NodeOperator::kGt, {"40", "50"}}, false},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(Holds(each.requirement, labels), each.want) << each.name;
  }
}

TEST(Feasibility, FirstObstacle) {
  const auto with = [](auto change) {
    NodeView node = GpuNode("n", 4);
    change(node);
    return node;
  };
  PodNeeds needs{.resources = {.gpus = 1, .cpu_millis = 1000, .memory_bytes = kGiB}};
  const struct {
    std::string name;
    NodeView node;
    Obstacle want;
  } cases[] = {
      {"fits", GpuNode("n", 4), Obstacle::kNone},
      {"not ready", with([](NodeView& node) { node.ready = false; }), Obstacle::kNotReady},
      {"cordoned", with([](NodeView& node) { node.schedulable = false; }), Obstacle::kCordoned},
      {"tainted", with([](NodeView& node) { node.taints = {{"a", "b", "NoSchedule"}}; }),
       Obstacle::kTaint},
      {"would be evicted", with([](NodeView& node) { node.taints = {{"a", "b", "NoExecute"}}; }),
       Obstacle::kTaint},
      {"would rather not",
       with([](NodeView& node) { node.taints = {{"a", "b", "PreferNoSchedule"}}; }),
       Obstacle::kNone},
      {"no GPU left", with([](NodeView& node) { node.foreign.gpus = 4; }), Obstacle::kGpus},
      {"no CPU left", with([](NodeView& node) { node.foreign.cpu_millis = 63'500; }),
       Obstacle::kCpu},
      {"no memory left", with([](NodeView& node) { node.foreign.memory_bytes = 512 * kGiB; }),
       Obstacle::kMemory},
  };
  for (const auto& each : cases) EXPECT_EQ(ObstacleOn(each.node, needs), each.want) << each.name;

  needs.node_selector = {{"zone", "a"}};
  EXPECT_EQ(ObstacleOn(GpuNode("n", 4), needs), Obstacle::kLabels);
  needs.node_selector.clear();
  const NodeRequirement has_zone{"zone", NodeOperator::kExists, {}};
  const NodeRequirement no_zone{"zone", NodeOperator::kDoesNotExist, {}};
  needs.node_affinity = {{has_zone}, {no_zone}};
  EXPECT_EQ(ObstacleOn(GpuNode("n", 4), needs), Obstacle::kNone) << "one term is enough";
  needs.node_affinity = {{has_zone, no_zone}};
  EXPECT_EQ(ObstacleOn(GpuNode("n", 4), needs), Obstacle::kLabels) << "all of a term must hold";
  needs.node_affinity = {{}};
  EXPECT_EQ(ObstacleOn(GpuNode("n", 4), needs), Obstacle::kLabels)
      << "an empty term matches nothing";
}

TEST(Feasibility, SumsBeyondAllBoundsStayThere) {
  constexpr Resources kAll{.gpus = INT64_MAX, .cpu_millis = INT64_MAX, .memory_bytes = INT64_MAX};
  constexpr Resources kMin{.gpus = INT64_MIN, .cpu_millis = INT64_MIN, .memory_bytes = INT64_MIN};
  EXPECT_EQ(kAll + kAll, kAll);
  EXPECT_EQ(kMin - kAll, kMin);
  EXPECT_EQ(kAll - kMin, kAll);
  EXPECT_EQ(kMin + kMin, kMin);
  NodeView node = GpuNode("n", 4);
  node.foreign = kAll;
  node.foreign += kAll;  // two foreign pods that are pinned to the node
  EXPECT_EQ(ObstacleOn(node, {.resources = {.gpus = 1}}), Obstacle::kGpus);
}

// All sizes that a bitwise job may get, from 1 on.
std::vector<LearnerCount> FasterSizes(int shards, std::int64_t gpus_each = 1) {
  const JobView job = JobOf("a").Shards(shards).GpusEach(gpus_each).view;
  std::vector<LearnerCount> sizes = {1};
  while (const auto next = NextFasterSize(job, sizes.back())) sizes.push_back(*next);
  return sizes;
}

TEST(Sizes, ABitwiseJobIsAsFastAsItsBusiestGpu) {
  EXPECT_EQ(FasterSizes(1), (std::vector<LearnerCount>{1}));
  EXPECT_EQ(FasterSizes(4), (std::vector<LearnerCount>{1, 2, 4}));
  EXPECT_EQ(FasterSizes(8), (std::vector<LearnerCount>{1, 2, 3, 4, 8}));
  EXPECT_EQ(FasterSizes(32), (std::vector<LearnerCount>{1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 32}));
  EXPECT_EQ(FasterSizes(32, 2), (std::vector<LearnerCount>{1, 2, 3, 4, 6, 8, 16}));
}

TEST(Sizes, EverySizeOfAStatisticalJobIsFaster) {
  JobView job = JobOf("a").Shards(4).view;
  job.training.reproducibility = Reproducibility::kStatistical;
  EXPECT_EQ(NextFasterSize(job, 2), 3);
  EXPECT_EQ(NextFasterSize(job, 9), 10);
}

TEST(Sizes, ShardLimit) {
  EXPECT_EQ(ShardLimit(JobOf("a").Shards(32).view), 32);
  EXPECT_EQ(ShardLimit(JobOf("a").Shards(32).GpusEach(8).view), 4);
  EXPECT_EQ(ShardLimit(JobOf("a").Shards(4).GpusEach(8).view), 1);
}

}  // namespace
}  // namespace pliant::planner
