#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/planner/builders.h"

// If jobs differ in their needs, the search for nodes misses a place or not, depending on where
// learners are.
namespace pliant::planner {
namespace {

constexpr auto kStarting = LearnerState::kStarting;
constexpr auto kGated = LearnerState::kGated;

struct SomeNode {
  std::int64_t gpus;
  std::int64_t cpus;
  std::string pool;
};

std::vector<NodeView> NodesOf(const std::vector<SomeNode>& nodes) {
  std::vector<NodeView> views;
  for (const SomeNode& node : nodes) {
    NodeView view = GpuNode(Format("n{}", views.size()), node.gpus);
    view.allocatable.cpu_millis = node.cpus * 1000;
    view.labels["pool"] = node.pool;
    view.ready = node.gpus > 0;
    views.push_back(view);
  }
  return views;
}

// Plans that change something before one that does not; leavers end at once.
int PlansBeforeRest(std::vector<NodeView> nodes, const std::vector<JobOf>& jobs) {
  World world(std::move(nodes));
  world.snapshot.now = kStart + Seconds{3600};
  for (const JobOf& job : jobs) {
    world.snapshot.jobs.push_back(job.view);
    world.snapshot.jobs.back().cooldown = Seconds{0};
  }
  for (int plans = 0; plans < 8; ++plans) {
    const Plan plan = world.MakePlan();
    if (std::ranges::all_of(plan.decisions, &Decision::ChangesNothing)) return plans;
    world.CarryOut(plan);
    world.EndLeavers();
  }
  ADD_FAILURE() << "the plans alternate\n" << Describe(world.snapshot);
  return 0;
}

// Found at random: plans gave job a its second learner and took it back, for ever.
TEST(Alternation, TheLastGpuIsFoundOnlyByAJobThatDoesNotHaveIt) {
  const Seconds soon{4000};
  JobOf capped = JobOf("b", 4, 4).Priority(1).Shards(4).OnlyOn("slow").Avoids("n0", soon);
  capped.Has(1, "n0", kGated, Seconds{3400}).Has(2, "n1", kStarting, Seconds{3481});
  capped.Has(1, "n0", kGated, Seconds{3400});
  capped.view.cap = DemandCap{.learners = 1, .until = kStart + Seconds{3601}};
  const int plans = PlansBeforeRest(
      NodesOf({{0, 1, "fast"}, {5, 1, "slow"}, {5, 1, "fast"}, {4, 1, "fast"}}),
      {JobOf("a", 1, 3)
           .Priority(1)
           .Shards(8)
           .OnlyOn("fast")
           .Avoids("n0", soon)
           .Has(1, "n0", kStarting, Seconds{3481}),
       capped, JobOf("c", 2, 2).Priority(1).Shards(4).GpusEach(2).Avoids("n0", soon),
       JobOf("d", 3, 8).Priority(6).Shards(8).Avoids("n0", soon)});
  EXPECT_LE(plans, 2);
}

}  // namespace
}  // namespace pliant::planner
