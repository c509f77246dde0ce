#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

// Which nodes learners are on, which learners leave, and when a gate may open.
namespace pliant::planner {
namespace {

NodeView InPool(NodeView node, const std::string& pool) {
  node.labels["pool"] = pool;
  return node;
}
NodeView Cordoned(NodeView node) {
  node.schedulable = false;
  return node;
}
NodeView NotReady(NodeView node) {
  node.ready = false;
  return node;
}
NodeView TakenBy(const std::string& name_space, NodeView node) {
  node.foreign_users = {.gpus = name_space, .cpu = name_space, .memory = name_space};
  return node;
}

NodeView WithForeign(NodeView node, Resources foreign) {
  node.foreign = foreign;
  return node;
}
JobOf Avoiding(JobOf job, const std::string& node, Seconds until) {
  job.view.avoided.push_back({node, kStart + until});
  return job;
}

const PlanCase kPlacements[] = {
    {.name = "a job's learners stand together",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 4), JobOf("b", 1, 4)},
     .want = {{"a", 4, ReasonCode::kMaximum, "", {{"n00", 4}}},
              {"b", 4, ReasonCode::kMaximum, "", {{"n01", 4}}}}},
    {.name = "the node that they fill best",
     .nodes = {GpuNode("n0", 8), GpuNode("n1", 2), GpuNode("n2", 4)},
     .jobs = {JobOf("a", 1, 2)},
     .want = {{"a", 2, ReasonCode::kMaximum, "", {{"n1", 2}}}}},
    {.name = "largest groups are placed first",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 2), JobOf("b", 1, 4), JobOf("c", 1, 2)},
     .want = {{"a", 2, ReasonCode::kMaximum, "", {{"n01", 2}}},
              {"b", 4, ReasonCode::kMaximum, "", {{"n00", 4}}},
              {"c", 2, ReasonCode::kMaximum, "", {{"n01", 2}}}}},
    {.name = "running learners stay, though one node would do",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 4).Has(2, "n00").Has(2, "n01")},
     .want = {{"a", 4, ReasonCode::kMaximum, "", {{"n00", 2}, {"n01", 2}}}}},
    {.name = "leavers come from the most scattered node",
     .nodes = Nodes(3, 4),
     .jobs = {JobOf("a", 1, 4).Has(1, "n00").Has(3, "n01").Has(2, "n02")},
     .want = {{"a", 4, ReasonCode::kMaximum, "", {{"n01", 3}, {"n02", 1}}}}},
    {.name = "learners that do not train yet leave first",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 2).Has(3, "n00", LearnerState::kStarting).Has(2, "n01")},
     .want = {{"a", 2, ReasonCode::kMaximum, "", {{"n01", 2}}}},
     .now = Seconds{30}},
    {.name = "new learners rather stand on free GPUs than wait for leavers",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("gone").Suspended().Has(2, "n00", LearnerState::kLeaving), JobOf("a", 1, 2)},
     .want = {{"gone", 0, ReasonCode::kSuspended},
              {"a", 2, ReasonCode::kMaximum, "", {{"n01", 2}}}}},
    {.name = "but rather wait than scatter",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("gone").Suspended().Has(3, "n00", LearnerState::kLeaving),
              JobOf("b", 1, 1).Has(1, "n01"), JobOf("a", 1, 4)},
     .want = {{"gone", 0, ReasonCode::kSuspended},
              {"b", 1, ReasonCode::kMaximum},
              {"a", 4, ReasonCode::kMaximum, "", {{"n00", 4}}}}},
};

TEST(Placement, KeepsAndPacks) {
  for (const PlanCase& plan_case : kPlacements) ExpectPlan(plan_case);
}

const PlanCase kRestricted[] = {
    {.name = "leavers come from the nodes that others can use",
     .nodes = {InPool(GpuNode("n0", 4), "fast"), GpuNode("n1", 4)},
     .jobs = {JobOf("old").Has(4, "n0").Has(4, "n1"), JobOf("new").OnlyOn("fast")},
     .want = {{"old", 4, ReasonCode::kFairShare, "", {{"n1", 4}}},
              {"new", 4, ReasonCode::kFairShare, "", {{"n0", 4}}}}},
    {.name = "a job that can only use full nodes makes others move, if there is room elsewhere",
     .nodes = {InPool(GpuNode("n0", 2), "fast"), GpuNode("n1", 2)},
     .jobs = {JobOf("old", 1, 2).Has(2, "n0"), JobOf("new", 1, 1).OnlyOn("fast")},
     .want = {{"old", 2, ReasonCode::kMaximum, "", {{"n0", 1}, {"n1", 1}}},
              {"new", 1, ReasonCode::kMaximum, "", {{"n0", 1}}}}},
    {.name = "but not in their cooldown",
     .nodes = {InPool(GpuNode("n0", 2), "fast"), GpuNode("n1", 2)},
     .jobs = {JobOf("old", 2, 2).Has(2, "n0").Resized(Seconds{90}),
              JobOf("new", 1, 1).OnlyOn("fast")},
     .want = {{"old", 2, ReasonCode::kMaximum, "", {{"n0", 2}}}, {"new", 0, ReasonCode::kQueued}},
     .now = Seconds{100}},
    {.name = "so is what is left on nodes that a job avoids",
     .nodes = {GpuNode("n0", 2), GpuNode("n1", 2)},
     .jobs = {JobOf("a").Avoids("n1", Seconds{4000})},
     .want =
         {{"a",
           2,
           ReasonCode::kNodesFull,
           "2 of 4 GPUs: the nodes that it can use are full; fair share 1/1 by priority 5000 of "
           "5000 in queue default",
           {{"n0", 2}}}}},
    {.name = "what others get on nodes that a job cannot use is named",
     .nodes = {InPool(GpuNode("n0", 2), "fast"), GpuNode("n1", 6)},
     .jobs = {JobOf("a").OnlyOn("fast"), JobOf("b")},
     .want =
         {{"a", 2, ReasonCode::kNodesFull,
           "2 of 8 GPUs: the nodes that it can use are full; fair share 1/2 by priority 5000 of "
           "10000 in queue default"},
          {"b", 6, ReasonCode::kBorrowed}}},
    {.name = "no job overtakes on the nodes that another waits for; elsewhere it may",
     .nodes = {InPool(GpuNode("n0", 2), "fast"), InPool(GpuNode("n1", 2), "slow")},
     .jobs = {JobOf("runs", 1, 2).OnlyOn("fast").Has(2, "n0"),
              JobOf("waits", 2, 2).OnlyOn("fast").Submitted(Seconds{1}),
              JobOf("behind", 1, 1).OnlyOn("fast").Submitted(Seconds{2}),
              JobOf("other", 1, 1).OnlyOn("slow").Submitted(Seconds{3})},
     .want = {{"runs", 2, ReasonCode::kMaximum},
              {"waits", 0, ReasonCode::kQueued},
              {"behind", 0, ReasonCode::kQueuedBehind},
              {"other", 1, ReasonCode::kMaximum}}},
    {.name = "CPU and memory count too",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a").Needs(20'000, kGiB)},
     .want = {{"a", 3, ReasonCode::kNodesFull}}},
    {.name = "and those of others' pods",
     .nodes = {WithForeign(GpuNode("n0", 4), {.gpus = 1, .cpu_millis = 60'000})},
     .jobs = {JobOf("a").Needs(2'000, kGiB)},
     .want = {{"a", 2, ReasonCode::kNodesFull}}},
    {.name = "a node on which the job's pods failed is avoided for a time",
     .nodes = Nodes(2, 4),
     .jobs = {Avoiding(JobOf("a", 1, 4), "n00", Seconds{200})},
     .want = {{"a", 4, ReasonCode::kMaximum, "", {{"n01", 4}}}},
     .now = Seconds{199}},
    {.name = "and used again after it",
     .nodes = Nodes(2, 4),
     .jobs = {Avoiding(JobOf("a", 1, 4), "n00", Seconds{200})},
     .want = {{"a", 4, ReasonCode::kMaximum, "", {{"n00", 4}}}},
     .now = Seconds{200}},
    {.name = "the reason counts what is wrong with the nodes",
     .nodes = {GpuNode("n0", 4), Cordoned(GpuNode("n1", 4)), NotReady(GpuNode("n2", 4))},
     .jobs = {JobOf("a").Needs(100'000, kGiB)},
     .want = {{"a", 0, ReasonCode::kNoNodeFits,
               "no node can run a learner: 1 not ready, 1 cordoned, 1 with too little CPU"}}},
    {.name = "and whose pods take what is missing",
     .nodes = {TakenBy("team-b", WithForeign(GpuNode("n0", 4), {.cpu_millis = 60'000})),
               TakenBy("team-b", WithForeign(GpuNode("n1", 4), {.cpu_millis = 60'000})),
               TakenBy("team-c", WithForeign(GpuNode("n2", 4), {.cpu_millis = 60'000})),
               WithForeign(GpuNode("n3", 4), {.gpus = 4})},
     .jobs = {JobOf("a").Needs(10'000, kGiB)},
     .want = {{"a", 0, ReasonCode::kNodesTaken,
               "waits for 1 GPU (minLearners 1): no node has room for a learner: 1 with too few "
               "GPUs, 3 with too little CPU (most is taken by pods of namespace team-b)"}}},
    {.name = "but not of a node that is too small in any case",
     .nodes = {TakenBy("team-b", WithForeign(GpuNode("n0", 4), {.cpu_millis = 60'000}))},
     .jobs = {JobOf("a").Needs(100'000, kGiB)},
     .want = {{"a", 0, ReasonCode::kNoNodeFits,
               "no node can run a learner: 1 with too little CPU"}}},
};

TEST(Placement, RespectsWhatNodesOffer) {
  for (const PlanCase& plan_case : kRestricted) ExpectPlan(plan_case);
}

const PlanCase kBadNodes[] = {
    {.name = "learners on a cordoned node stay, and none are added",
     .nodes = {Cordoned(GpuNode("n0", 4)), GpuNode("n1", 4)},
     .jobs = {JobOf("a").Has(3, "n0")},
     .want = {{"a", 7, ReasonCode::kFairShare, "", {{"n0", 3}, {"n1", 4}}}}},
    {.name = "when a job shrinks, those learners leave whose GPUs others can use",
     .nodes = {Cordoned(GpuNode("n0", 4)), GpuNode("n1", 4)},
     .jobs = {JobOf("a").Has(4, "n0").Has(4, "n1"), JobOf("b")},
     .want = {{"a", 4, ReasonCode::kFairShare, "", {{"n0", 4}}},
              {"b", 4, ReasonCode::kFairShare, "", {{"n1", 4}}}}},
    {.name = "a gated learner does not wait on a removed node",
     .nodes = {NotReady(GpuNode("n0", 4)), GpuNode("n1", 4)},
     .jobs =
         {JobOf("a", 1, 2).Has(1, "n0", LearnerState::kGated).Has(1, "gone", LearnerState::kGated)},
     .want = {{"a", 2, ReasonCode::kMaximum, "", {{"n1", 2}}}}},
    {.name = "a node that is not in the snapshot is as good as one that is not ready",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a", 1, 2).Has(1, "gone")},
     .want = {{"a", 2, ReasonCode::kMaximum, "", {{"gone", 1}, {"n00", 1}}}}},
    {.name = "a node that lost GPUs keeps its learners, and gets no new ones",
     .nodes = {GpuNode("n0", 2)},
     .jobs = {JobOf("a", 1, 3).Has(3, "n0"), JobOf("b", 1, 1)},
     .want = {{"a", 1, ReasonCode::kFairShare}, {"b", 1, ReasonCode::kMaximum}}},
    {.name = "a node that lost GPUs, and no job waits",
     .nodes = {GpuNode("n0", 2)},
     .jobs = {JobOf("a", 1, 4).Has(3, "n0")},
     .want = {{"a", 3}}},
    {.name = "no job waits for a GPU that a foreign pod took",
     .nodes = {WithForeign(GpuNode("n0", 2), {.gpus = 1}), GpuNode("n1", 1)},
     .jobs = {JobOf("a", 1, 2).Has(2, "n0", LearnerState::kGated)},
     .want = {{"a", 2, ReasonCode::kMaximum, "", {{"n0", 1}, {"n1", 1}}}}},
};

TEST(Placement, NodesThatAreNotWhatTheyWere) {
  for (const PlanCase& plan_case : kBadNodes) ExpectPlan(plan_case);
}

// The gates that a plan opens, as "job/learner".
std::vector<std::string> Opened(const PlanCase& plan_case) {
  std::vector<std::string> opened;
  for (const GateOpening& gate : MakePlan(SnapshotOf(plan_case), {}).gates_open) {
    opened.push_back(gate.learner + "@" + gate.node);
  }
  return opened;
}

TEST(Gates, OpenWhenTheGpuIsFree) {
  const auto gated = LearnerState::kGated;
  const struct {
    std::string name;
    PlanCase cluster;
    std::vector<std::string> want;
  } cases[] = {
      {"a free GPU",
       {.nodes = Nodes(1, 1), .jobs = {JobOf("a", 1, 1).Has(1, "n00", gated)}},
       {"a-0@n00"}},
      {"a leaver still holds it",
       {.nodes = Nodes(1, 1),
        .jobs = {JobOf("a", 1, 1).Has(1, "n00", gated),
                 JobOf("b", 1, 1).Suspended().Has(1, "n00", LearnerState::kLeaving)}},
       {}},
      {"a foreign pod holds it",
       {.nodes = {WithForeign(GpuNode("n0", 1), {.gpus = 1})},
        .jobs = {JobOf("a", 1, 1).Has(1, "n0", gated)}},
       {}},
      {"a learner that is dropped stays behind its gate",
       {.nodes = Nodes(1, 2), .jobs = {JobOf("a", 1, 1).Has(2, "n00", gated)}},
       {"a-0@n00"}},
      {"the learner that waits longest is first",
       {.nodes = Nodes(1, 2),
        .jobs = {JobOf("a", 1, 1).Has(1, "n00", gated, Seconds{20}),
                 JobOf("b", 1, 1).Has(1, "n00", gated, Seconds{10}),
                 JobOf("c", 1, 1).Suspended().Has(1, "n00", LearnerState::kLeaving)}},
       {"b-0@n00"}},
      {"not on a node that may start nothing",
       {.nodes = {Cordoned(GpuNode("n0", 1))}, .jobs = {JobOf("a", 1, 1).Has(1, "n0", gated)}},
       {}},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(Opened(each.cluster), each.want) << each.name;
  }
}

}  // namespace
}  // namespace pliant::planner
