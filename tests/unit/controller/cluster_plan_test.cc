#include "operator/controller/rounds/cluster_plan.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/controller/dying_processes.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using Names = std::vector<kube::NamespacedName>;

planner::Decision DecisionFor(const std::string& job, int to = 0) {
  return {.job = {.name_space = "team-a", .name = job, .uid = kUid}, .from = to, .to = to};
}

TEST(ClusterPlan, AJobsPartOfThePlanIsItsDecisionAndItsGates) {
  planner::Plan plan{.decisions = {DecisionFor("a", 1), DecisionFor("c", 3)}};
  plan.gates_open = {{.job = plan.decisions[1].job, .learner = "c-0"},
                     {.job = plan.decisions[0].job, .learner = "a-0"},
                     {.job = plan.decisions[1].job, .learner = "c-1"}};
  EXPECT_EQ(PlanOf(plan, {"team-a", "c"})->decision.to, 3);
  EXPECT_EQ(PlanOf(plan, {"team-a", "c"})->open, (std::vector<std::string>{"c-0", "c-1"}));
  for (const char* unplanned : {"", "b", "d"}) {
    EXPECT_EQ(DecisionOn(plan, {"team-a", unplanned}), nullptr) << unplanned;
    EXPECT_FALSE(PlanOf(plan, {"team-a", unplanned})) << unplanned;
  }
  EXPECT_EQ(DecisionOn(plan, {"team-b", "c"}), nullptr);
}

TEST(ClusterPlan, FindsTheJobsWithNews) {
  const struct {
    const char* name;
    std::function<void(planner::Decision&, JobView&)> change;
    bool news;
  } kCases[] = {
      {"nothing", [](planner::Decision&, JobView&) {}, false},
      {"a size", [](planner::Decision& d, JobView&) { d.to = 3; }, true},
      {"an entitlement", [](planner::Decision& d, JobView&) { d.entitlement = 3; }, true},
      {"a learner leaves", [](planner::Decision& d, JobView&) { d.drop = {"a"}; }, true},
      {"a learner comes", [](planner::Decision& d, JobView&) { d.create = {{"gpu-1"}}; }, true},
      {"a sentence", [](planner::Decision& d, JobView&) { d.reason.sentence = "new"; }, true},
      {"a sentence with other numbers, while progress waits for its turn",
       [](planner::Decision& d, JobView& view) {
         d.reason = {.code = planner::ReasonCode::kMaximum, .sentence = "new"};
         view.soft_state.reporting.last.reason = planner::ReasonCode::kMaximum;
         view.soft_state.reporting.next_progress_write = At(11);
       },
       false},
      {"the same, when its turn has come",
       [](planner::Decision& d, JobView& view) {
         d.reason = {.code = planner::ReasonCode::kMaximum, .sentence = "new"};
         view.soft_state.reporting.last.reason = planner::ReasonCode::kMaximum;
         view.soft_state.reporting.next_progress_write = At(10);
       },
       true},
  };
  for (const auto& c : kCases) {
    JobView view = TrainingView(2);
    planner::Decision decision = DecisionFor("digits", 2);
    decision.entitlement = view.job->status.share.entitlement;
    decision.reason.sentence = view.job->status.reason;
    c.change(decision, view);
    const kube::NamespacedName key{"team-a", "digits"};
    EXPECT_EQ(JobsWithNews({.decisions = {decision}}, {{{"team-a", "a"}, {}}, {key, view}}, At(10)),
              c.news ? Names{key} : Names{})
        << c.name;
  }
}

TEST(ClusterPlan, AGateThatMayOpenIsNews) {
  const JobView view = TrainingView(2);
  planner::Plan plan{.decisions = {DecisionFor("digits", 2)}};
  plan.decisions[0].entitlement = view.job->status.share.entitlement;
  plan.decisions[0].reason.sentence = view.job->status.reason;
  plan.gates_open = {{.job = plan.decisions[0].job, .learner = "x"}};
  const kube::NamespacedName key{"team-a", "digits"};
  EXPECT_EQ(JobsWithNews(plan, {{key, view}}, At(10)), Names{key});
}

TEST(ClusterPlan, DetectsTheChangesThatMayChangeThePlan) {
  const QueueBook book;
  ClusterPlan plan({}, book, "pliant", nullptr);
  const auto seen = [&](const api::Node* before, const api::Node* after) {
    return plan.SeeNode({{"", "n"},
                         before == nullptr ? nullptr : Shared(*before),
                         after == nullptr ? nullptr : Shared(*after)});
  };
  api::Node node{.ready = true, .allocatable = {.gpus = 4}};
  node.meta = {.name = "n", .resource_version = "1"};
  api::Node heartbeat = node;
  heartbeat.meta.resource_version = "2";
  api::Node unready = heartbeat;
  unready.ready = false;
  EXPECT_TRUE(seen(nullptr, &node));
  EXPECT_FALSE(seen(&node, &heartbeat));
  EXPECT_TRUE(seen(&heartbeat, &unready));
  EXPECT_TRUE(seen(&unready, nullptr));

  const auto pod = [&](const api::Pod& before, const api::Pod& after) {
    return plan.SeePod({{"team-b", "p"}, Shared(before), Shared(after)});
  };
  api::Pod waiting;
  waiting.meta = {.name_space = "team-b", .name = "p"};
  api::Pod running = waiting, elsewhere = waiting, ended = waiting, larger = waiting;
  running.phase = api::PodPhase::kRunning;
  elsewhere.node_name = "n";
  ended.phase = api::PodPhase::kSucceeded;
  larger.requests.gpus = 2;
  EXPECT_FALSE(pod(waiting, running));
  EXPECT_TRUE(pod(waiting, elsewhere));
  EXPECT_TRUE(pod(waiting, ended));
  EXPECT_TRUE(pod(waiting, larger));

  api::ResourceQuota quota{.gpus = 4};
  api::ResourceQuota more{.gpus = 8};
  const auto quota_seen = [&](const api::ResourceQuota& before, const api::ResourceQuota& after) {
    return plan.SeeQuota({{"team-b", "q"}, Shared(before), Shared(after)});
  };
  EXPECT_FALSE(quota_seen(quota, quota));
  EXPECT_TRUE(quota_seen(quota, more));
  api::ResourceQuota slices{.others = {{"nvidia.com/mig-1g.10gb", 4}}};
  api::ResourceQuota fewer{.others = {{"nvidia.com/mig-1g.10gb", 0}}};
  EXPECT_FALSE(quota_seen(slices, slices));
  EXPECT_TRUE(quota_seen(slices, fewer));
}

TEST(ClusterPlan, PlansTheNodesAndJobsThatItSees) {
  const QueueBook book;
  ClusterPlan plan({}, book, "pliant", nullptr);
  api::Node node{.ready = true, .allocatable = {.gpus = 4}};
  node.meta.name = "gpu-1";
  plan.SeeNode({{"", "gpu-1"}, nullptr, Shared(node)});
  JobView view = TrainingView(2);
  const kube::NamespacedName key{"team-a", "digits"};
  plan.SeeJob(key, &view, At(10));
  EXPECT_EQ(plan.Make(At(10)).decisions.size(), 1u);
  EXPECT_EQ(plan.snapshot().jobs.size(), 1u);
  EXPECT_EQ(plan.plan().capacity_gpus, 4);
  plan.SeeJob(key, nullptr, At(11));
  EXPECT_TRUE(plan.Make(At(11)).decisions.empty());
}

// A planner bug that one job triggers: the planner divides by the priorities of the jobs that share
// a queue's GPUs. A decoded job never has priority 0.
TEST(ClusterPlan, OnceAProcessHasDiedAtThePlanTheNextDiesAtTheJob) {
  const DyingProcesses processes;
  api::Node node{.ready = true, .allocatable = {.gpus = 4}};
  node.meta.name = "gpu-1";
  JobView good = TrainingView(2);
  JobView deadly = TrainingView(0);
  Edit(good.job).meta.uid = "good";
  Edit(good.job).spec.queue = "another";
  Edit(deadly.job).spec.priority = 0;
  const auto make_plan = [&](CrashNotes* notes) {
    const QueueBook book;
    ClusterPlan plan({}, book, "pliant", notes);
    plan.SeeNode({{"", "gpu-1"}, nullptr, Shared(node)});
    for (const JobView* view : {&good, &deadly}) {
      const api::ObjectMeta& job = view->job->meta;
      const CrashNotes::Mark busy = CrashNotes::BusyWith(notes, job);
      plan.SeeJob({job.name_space, job.uid}, view, At(10));
    }
    plan.Make(At(10));
  };
  processes.DieOf(make_plan);
  EXPECT_EQ(processes.Notes()->DeathsAtPlan(), 1);
  EXPECT_EQ(processes.Notes()->DeathsAt(deadly.job->meta), 0);
  for (const int deaths : {1, 2}) {
    processes.DieOf(make_plan);
    EXPECT_EQ(processes.Notes()->DeathsAt(deadly.job->meta), deaths);
  }
  EXPECT_EQ(processes.Notes()->DeathsAtPlan(), 1);
  EXPECT_EQ(processes.Notes()->DeathsAt(good.job->meta), 0);
}

}  // namespace
}  // namespace pliant::controller
