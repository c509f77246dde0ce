#include "operator/controller/snapshot_builder.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "operator/controller/job_memory.h"
#include "operator/controller/snapshot_json.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

std::shared_ptr<const api::Node> GpuNode(const std::string& name, std::int64_t gpus) {
  api::Node node{.ready = true,
                 .taints = {{.key = "gpu", .effect = "NoSchedule"}},
                 .allocatable = {.gpus = gpus, .cpu_millis = 8000, .memory_bytes = 1000}};
  node.meta.name = name;
  return std::make_shared<const api::Node>(std::move(node));
}

std::shared_ptr<const api::Pod> Foreign(const std::string& name,
                                        const std::function<void(api::Pod&)>& change) {
  api::Pod pod;
  pod.meta.name = name;
  pod.meta.uid = name;
  pod.requests = {.gpus = 1, .cpu_millis = 100, .memory_bytes = 10};
  change(pod);
  return std::make_shared<const api::Pod>(std::move(pod));
}

TEST(SnapshotBuilder, OtherPeoplesPodsTakeRoomWhereTheyAreOrArePromised) {
  const std::vector<std::shared_ptr<const api::Pod>> pods = {
      Foreign("bound", [](api::Pod& pod) { pod.node_name = "gpu-1"; }),
      Foreign("nominated", [](api::Pod& pod) { pod.nominated_node_name = "gpu-1"; }),
      Foreign("daemon", [](api::Pod& pod) { pod.pinned_node = "gpu-1"; }),
      Foreign("leaving",
              [](api::Pod& pod) {
                pod.node_name = "gpu-1";
                pod.meta.deleted = At(1);
              }),
      Foreign("ended",
              [](api::Pod& pod) {
                pod.node_name = "gpu-1";
                pod.phase = api::PodPhase::kSucceeded;
              }),
      Foreign("gated",
              [](api::Pod& pod) {
                pod.pinned_node = "gpu-1";
                pod.scheduling_gates = {"x"};
              }),
      Foreign("unscheduled", [](api::Pod&) {}),
      Foreign("elsewhere", [](api::Pod& pod) { pod.node_name = "cpu-1"; }),
  };
  const auto snapshot = BuildSnapshot({GpuNode("gpu-1", 8), GpuNode("cpu-1", 0)}, pods, {}, At(5));
  ASSERT_EQ(snapshot.nodes.size(), 1u) << "a node without GPUs is of no interest";
  EXPECT_EQ(snapshot.nodes[0].foreign,
            (planner::Resources{.gpus = 4, .cpu_millis = 400, .memory_bytes = 40}));
  EXPECT_EQ(snapshot.nodes[0].allocatable.gpus, 8);
  EXPECT_EQ(snapshot.now, At(5));
}

TEST(SnapshotBuilder, LearnersCountForTheirJobNotAsForeign) {
  JobView view = TrainingView(5);
  view.learners[1] = Learner(1, Life::kStarting);
  view.learners[2] = Learner(2, Life::kGated, "gpu-2");
  view.learners[3] = Deleting(view.learners[3]);
  view.learners.push_back(Learner(5, Life::kFailed));
  view.learners.push_back(Deleting(Learner(6, Life::kGated)));
  view.memory.starting_since[Name(1)] = At(40);
  view.memory.leaving_since[Name(4)] = At(45);
  view.memory.nodes["gpu-9"] = {.count = 1, .avoid_until = At(99)};
  std::vector<std::shared_ptr<const api::Pod>> pods;
  for (const api::Pod& pod : view.learners) pods.push_back(std::make_shared<const api::Pod>(pod));
  const auto snapshot = BuildSnapshot({GpuNode("gpu-1", 8)}, pods, {&view}, At(50));
  EXPECT_EQ(snapshot.nodes[0].foreign, planner::Resources{});
  ASSERT_EQ(snapshot.jobs.size(), 1u);
  const planner::JobView& job = snapshot.jobs[0];
  EXPECT_FALSE(job.suspended);
  EXPECT_EQ(job.logical_shards, 32);
  EXPECT_EQ(job.learners_desired, 5);
  ASSERT_EQ(job.avoided.size(), 1u);
  ASSERT_EQ(job.learners.size(), 5u) << "ended ones, and gated ones that are deleted, hold nothing";
  using enum planner::LearnerState;
  EXPECT_EQ(job.learners[0].state, kRunning);
  EXPECT_TRUE(job.learners[0].member);
  EXPECT_EQ(job.learners[1].state, kStarting);
  EXPECT_EQ(job.learners[1].since, At(40));
  EXPECT_EQ(job.learners[2].state, kGated);
  EXPECT_EQ(job.learners[2].node, "gpu-2");
  EXPECT_EQ(job.learners[3].state, kLeaving);
  EXPECT_EQ(job.learners[4].state, kLeaving);
  EXPECT_EQ(job.learners[4].since, At(45));

  const auto text = nlohmann::json::parse(SnapshotJson(snapshot));
  EXPECT_EQ(text.at("/jobs/0/learners/2/state"_json_pointer), "Gated");
  EXPECT_EQ(text.at("/nodes/0/allocatable/gpus"_json_pointer), 8);
}

TEST(SnapshotBuilder, AJobThatIsNotAdmittedIsLetGo) {
  JobView view = TrainingView(1);
  SetCondition(view.job.status, kConditionAdmitted, {api::ConditionStatus::kFalse, "Suspended", ""},
               2, At(1));
  EXPECT_TRUE(PlannerView(view).suspended);
}

TEST(JobMemory, ANodeThatFailsLearnersIsAvoidedForAGrowingTime) {
  JobView view = TrainingView(0);
  view.learners = {Learner(0, Life::kFailed)};
  view.memory = Remember(view, At(100));
  EXPECT_EQ(view.memory.nodes.at("gpu-1").avoid_until, At(105));
  view.memory = Remember(view, At(101));
  EXPECT_EQ(view.memory.nodes.at("gpu-1").avoid_until, At(105)) << "each failure strikes once";
  view.learners.push_back(Learner(1, Life::kFailed));
  view.learners[1].meta.uid = "another";
  view.memory = Remember(view, At(102));
  EXPECT_EQ(view.memory.nodes.at("gpu-1").avoid_until, At(105)) << "it was there already";
  view.learners.push_back(Learner(2, Life::kFailed));
  view.learners[2].meta.uid = "one more";
  view.memory = Remember(view, At(106));
  EXPECT_EQ(view.memory.nodes.at("gpu-1").avoid_until, At(116));
  view.learners.clear();
  view.memory = Remember(view, At(900));
  EXPECT_TRUE(view.memory.nodes.empty()) << "forgiven";
}

TEST(JobMemory, RemembersSinceWhen) {
  JobView view = TrainingView(2);
  view.job.spec.elastic.min_learners = 3;
  view.job.status.attained_gpu_seconds = 50;
  view.coordinator.progress->learners[1].state = "Leaving";
  view.learners.push_back(Learner(2, Life::kGated));
  view.memory = Remember(view, At(10));
  EXPECT_EQ(view.memory.starting_since.size(), 2u);
  EXPECT_EQ(view.memory.leaving_since, (std::map<std::string, WallTime>{{Name(1), At(10)}}))
      << "an operator that was restarted learns it from the coordinator";
  EXPECT_EQ(view.memory.below_minimum_since, At(10));
  view.learners.pop_back();
  view.learners.pop_back();
  view.memory = Remember(view, At(20));
  EXPECT_TRUE(view.memory.leaving_since.empty());
  EXPECT_EQ(view.memory.below_minimum_since, At(10));
  EXPECT_DOUBLE_EQ(view.memory.gpu_seconds, 60) << "one learner ran for ten seconds more";
}

}  // namespace
}  // namespace pliant::controller
