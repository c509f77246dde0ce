#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

// Several pools in one snapshot: each is planned by itself.
namespace pliant::planner {
namespace {

NodeView In(const std::string& pool, NodeView node) {
  node.pool = pool;
  return node;
}

JobOf Job(const std::string& pool, const std::string& name, LearnerCount min = 1,
          LearnerCount max = 8) {
  JobOf job(name, min, max);
  job.Queue("q-" + pool);
  job.view.pool = pool;
  return job;
}

const std::vector<QueueView> kQueues = {{.name = "q-fast", .pool = "fast"},
                                        {.name = "q-slow", .pool = "slow"}};

const PlanCase kPools[] = {
    {.name = "jobs share the GPUs of their pool only",
     .nodes = {In("fast", GpuNode("f0", 2)), In("slow", GpuNode("s0", 8))},
     .jobs = {Job("fast", "a"), Job("fast", "b"), Job("slow", "c")},
     .want = {{"a", 1, ReasonCode::kFairShare,
               "1 of 2 GPUs: fair share 1/2 by priority 5000 of 10000 in queue q-fast"},
              {"b", 1, ReasonCode::kFairShare, "", {{"f0", 1}}},
              {"c", 8, ReasonCode::kMaximum, "", {{"s0", 8}}}},
     .queues = kQueues},
    {.name = "a node with GPUs of two kinds is in two pools, and has its CPUs once",
     .nodes = {In("fast", GpuNode("n0", 4)), In("slow", GpuNode("n0", 4))},
     .jobs = {Job("fast", "a", 4, 4).Needs(10'000, kGiB).Has(4, "n0"),
              Job("slow", "b", 1, 4).Needs(8'000, kGiB)},
     .want = {{"a", 4, ReasonCode::kMaximum}, {"b", 3, ReasonCode::kNodesFull}},
     .queues = kQueues},
    {.name = "learners stay on a node that has left their pool, and the new pool does not have it",
     .nodes = {In("slow", GpuNode("n0", 8)), In("fast", GpuNode("f0", 1))},
     .jobs = {Job("fast", "a", 6, 6).Has(6, "n0"), Job("slow", "b")},
     .want = {{"a", 6, ReasonCode::kMaximum}, {"b", 2, ReasonCode::kFairShare}},
     .queues = kQueues},
    {.name = "jobs of a pool that was deleted continue, and none is added",
     .nodes = {In("slow", GpuNode("s0", 8))},
     .jobs = {Job("fast", "a", 2, 4).Has(2, "f0"), Job("fast", "b"), Job("slow", "c")},
     .want = {{"a", 2, ReasonCode::kFairShare},
              {"b", 0, ReasonCode::kPoolMissing,
               "queue q-fast is of pool fast, which does not exist: an administrator has to create "
               "it"},
              {"c", 8, ReasonCode::kMaximum}},
     .queues = kQueues},
    {.name = "the budget of a namespace holds for all pools together",
     .nodes = {In("fast", GpuNode("f0", 8)), In("slow", GpuNode("s0", 8))},
     .jobs = {Job("fast", "a"), Job("slow", "b", 1, 3).Has(2, "s0")},
     .want = {{"a", 3, ReasonCode::kQuota}, {"b", 2, ReasonCode::kQuota}},
     .budgets = {{"team-a", 5}},
     .queues = kQueues},
};

TEST(Pools, ArePlannedByThemselves) {
  for (PlanCase plan_case : kPools) {
    plan_case.pools = {{.name = "fast"}, {.name = "slow"}};
    if (plan_case.name.contains("deleted")) plan_case.pools = {{.name = "slow"}};
    ExpectPlan(plan_case);
  }
}

TEST(Pools, LearnersThatStayHoldNothingOfAnotherResource) {
  ExpectPlan({.nodes = {In("slow", GpuNode("n0", 7))},
              .jobs = {Job("fast", "a", 6, 6).Has(6, "n0"), Job("slow", "b")},
              .want = {{"a", 6, ReasonCode::kMaximum}, {"b", 7, ReasonCode::kFairShare}},
              .queues = kQueues,
              .pools = {{.name = "fast"}, {.name = "slow", .resource = "slice"}}});
}

TEST(Pools, ABudgetHoldsForPoolsOfItsResource) {
  ExpectPlan({.nodes = {In("fast", GpuNode("f0", 8)), In("slow", GpuNode("s0", 8))},
              .jobs = {Job("fast", "a"), Job("slow", "b", 1, 3).Has(2, "s0")},
              .want = {{"a", 8, ReasonCode::kMaximum}, {"b", 2, ReasonCode::kQuota}},
              .budgets = {{"team-a", 2, "slice"}},
              .queues = kQueues,
              .pools = {{.name = "fast"}, {.name = "slow", .resource = "slice"}}});
}

TEST(Pools, APendingPodTakesPartInPoolsOfItsResource) {
  const auto yielded = [](const std::string& resource) {
    PlanCase plan_case{.nodes = {In("slow", GpuNode("s0", 8))},
                       .jobs = {Job("slow", "b")},
                       .queues = {kQueues[1]},
                       .pools = {{.name = "slow", .resource = "slice", .yields = true}}};
    ClusterSnapshot snapshot = SnapshotOf(plan_case);
    snapshot.pending = {{.name_space = "others",
                         .name = "notebook",
                         .resource = resource,
                         .gpus = 2,
                         .since = snapshot.now}};
    return MakePlan(snapshot, {}).pools.at(0).yielded;
  };
  EXPECT_EQ(yielded("slice"), 2);
  EXPECT_EQ(yielded(""), 0);
}

TEST(Pools, JobsLeaveReservedGpusFree) {
  PlanCase plan_case{
      .nodes = Nodes(1, 8),
      .jobs = {JobOf("a").Has(8, "n00")},
      .want = {{"a", 5, ReasonCode::kReserved,
                "5 of 8 GPUs: the GPUs that are left are reserved, or not lent; fair "
                "share 1/1 by priority 5000 of 5000 in queue default"}},
      .pools = {{.reserved_gpus = 3}}};
  ExpectPlan(plan_case);
}

TEST(Pools, AreReported) {
  PlanCase plan_case{.nodes = {In("fast", GpuNode("f0", 4)), In("slow", GpuNode("s0", 8))},
                     .jobs = {Job("slow", "a", 1, 3)},
                     .queues = kQueues,
                     .pools = {{.name = "fast"}, {.name = "slow"}}};
  plan_case.nodes[1].foreign.gpus = 2;
  const Plan plan = MakePlan(SnapshotOf(plan_case), {});
  EXPECT_EQ(plan.pools,
            (std::vector<PoolShare>{
                {.pool = "fast", .nodes = 1, .capacity = 4},
                {.pool = "slow", .nodes = 1, .capacity = 6, .allocated = 3, .foreign = 2}}));
  EXPECT_EQ(plan.capacity_gpus, 10);
}

}  // namespace
}  // namespace pliant::planner
