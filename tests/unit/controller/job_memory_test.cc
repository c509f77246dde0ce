#include "operator/controller/job_memory.h"

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

// What is remembered after the job was seen at `seconds` as it is now.
void See(JobView& view, double seconds) { view.memory = Remember(view, At(seconds)); }

TEST(JobMemory, AJobWaitsFromItsSubmissionUntilItIsPlanned) {
  JobView view{.job = Shared(AdmittedJob(0))};
  See(view, 5);
  EXPECT_EQ(view.memory.waiting_since, At(0));
  See(view, 9);
  EXPECT_EQ(view.memory.waiting_since, At(0));
  Edit(view.job).status.desired_learners = 2;
  See(view, 10);
  EXPECT_FALSE(view.memory.waiting_since);
}

TEST(JobMemory, AJobThatGaveItsGpusBackWaitsFromThen) {
  JobView view = TrainingView(2);
  See(view, 5);
  Edit(view.job).spec.suspend = true;
  Edit(view.job).status.desired_learners = 0;
  See(view, 10);
  EXPECT_FALSE(view.memory.waiting_since) << "it wants none";
  Edit(view.job).spec.suspend = false;
  See(view, 60);
  EXPECT_EQ(view.memory.waiting_since, At(60));
}

TEST(JobMemory, ALearnerIsGoneWhenItWasThereAndTheCoordinatorStillNamesIt) {
  JobView view = TrainingView(2);
  Edit(view.coordinator.progress).learners = {
      {.name = "a", .pod_uid = "uid-0", .state = "Member"},
      {.name = "b", .pod_uid = "uid-1", .state = "Member"},
      {.name = "c", .pod_uid = "unseen", .state = "Member"}};
  See(view, 1);
  EXPECT_TRUE(view.memory.gone.empty());
  view.learners.pop_back();
  for (const double at : {2, 3}) {
    See(view, at);
    EXPECT_EQ(view.memory.gone, std::set<std::string>{"uid-1"});
  }
  auto& named = Edit(view.coordinator.progress).learners;
  named.erase(named.begin() + 1);
  See(view, 4);
  EXPECT_TRUE(view.memory.gone.empty()) << "nobody asks any more";
}

TEST(JobMemory, WhatLearnersNeedIsReadFromThoseThatLive) {
  const auto needs = [](std::int64_t cpu) {
    return api::SharedNeeds{std::make_shared<const planner::PodNeeds>(
        planner::PodNeeds{.resources = {.gpus = 1, .cpu_millis = cpu}})};
  };
  JobView view = TrainingView(2);
  view.needs = view.job->spec.learner_template.needs;
  view.learners[0].asks = needs(100);
  view.learners[1].asks = needs(200);
  EXPECT_TRUE(NeedsAreGuessed(view));
  See(view, 1);
  EXPECT_FALSE(NeedsAreGuessed(view));
  EXPECT_EQ(NeedsOfLearner(view)->resources.cpu_millis, 200) << "of the newest";
  // Of another template they say nothing.
  SetTemplate(R"({"spec":{"containers":[{"name":"learner","image":"example/train:2"}]}})",
              Edit(view.job).spec);
  Edit(view.job).status.admitted_template = "another";
  See(view, 2);
  EXPECT_TRUE(NeedsAreGuessed(view));
  EXPECT_EQ(NeedsOfLearner(view), view.needs);
}

// A leader whose clock was an hour ahead has written them.
TEST(JobMemory, ATimeThatLiesAheadCountsFromWhenItWasReadFirst) {
  JobView view = TrainingView(1);
  Edit(view.job).status.start_time = At(5);
  Edit(view.job).status.resize_time = At(3600);
  See(view, 10);
  EXPECT_EQ(TimeOf(view, view.job->status.start_time), At(5));
  EXPECT_EQ(TimeOf(view, view.job->status.resize_time), At(10));
  See(view, 4000);
  EXPECT_EQ(TimeOf(view, view.job->status.resize_time), At(10));
  EXPECT_EQ(TimeOf(view, std::nullopt), std::nullopt);
  Edit(view.job).status.resize_time = At(4100);
  See(view, 4050);
  EXPECT_EQ(TimeOf(view, view.job->status.resize_time), At(4050));
  EXPECT_EQ(view.memory.times_ahead.size(), 1u);
}

TEST(JobMemory, AfterARestartOfTheOperatorAJobThatHasTrainedWaitsFromNow) {
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.attained_gpu_seconds = 100;
  See(view, 500);
  EXPECT_EQ(view.memory.waiting_since, At(500));
}

TEST(JobMemory, ANewLeaderLearnsFromThePodsWhatAJobHasAttained) {
  JobView view = TrainingView(2);
  Edit(view.job).spec.elastic.gpus_per_learner = 4;
  Edit(view.job).status.attained_gpu_seconds = 100;
  for (api::Pod& pod : view.learners) pod.containers[0].running_since = At(50);
  See(view, 60);
  EXPECT_DOUBLE_EQ(view.memory.gpu_seconds, 100) << "its status says more";
  view.memory = {};
  See(view, 150);
  EXPECT_DOUBLE_EQ(view.memory.gpu_seconds, 800);
}

TEST(JobMemory, AJobAttainsGpuSecondsAlsoWhileNobodyLooks) {
  JobView view = TrainingView(2);
  See(view, 0);
  view.learners.pop_back();  // just now
  See(view, 100);
  EXPECT_DOUBLE_EQ(view.memory.gpu_seconds, 200);
  See(view, 110);
  EXPECT_DOUBLE_EQ(view.memory.gpu_seconds, 210);
}

TEST(JobMemory, WhatTheServerRefusesIsKnownSinceTheFirstTimeUntilAllIsDone) {
  const std::vector<Action> actions = {OpenGate{.pod = "a"}, OpenGate{.pod = "b"},
                                       CreateLearner{.number = 3}};
  JobMemory memory;
  RememberRefusal(std::span(actions).subspan(1), "quota", At(5), memory);
  EXPECT_EQ(memory.refusal, "quota");
  EXPECT_EQ(memory.refused_grants, (RefusedGrants{.since = At(5), .gates = {"b"}}));
  RememberRefusal(std::span(actions).subspan(2), "another quota", At(9), memory);
  EXPECT_EQ(memory.refusal, "another quota");
  EXPECT_EQ(memory.refused_grants, (RefusedGrants{.since = At(5), .gates = {"b"}}));
  RememberNoAnswer(NewJob().meta, std::span(actions).subspan(2), "webhook", At(12), memory);
  EXPECT_EQ(memory.refusal, "webhook");
  EXPECT_TRUE(memory.unanswered);
  EXPECT_EQ(memory.refused_grants, (RefusedGrants{.since = At(5), .gates = {"b", Name(3)}}))
      << "the pod that may be there, too";
  RememberRefusal(std::span(actions).subspan(2), "quota", At(15), memory);
  EXPECT_FALSE(memory.unanswered);
  RememberNoAnswer(NewJob().meta, std::span(actions).subspan(2), "webhook", At(18), memory);
  ForgetRefusal(memory);
  EXPECT_EQ(memory, JobMemory{});
}

TEST(JobMemory, WhatNoLearnerWaitsForHoldsUpNoGrant) {
  const struct {
    const char* name;
    Action undone;
    bool holds_up;
  } kCases[] = {{"a pod", CreateLearner{}, true},
                {"the coordinator's pod", CreateCoordinator{}, true},
                {"its Service", CreateService{}, true},
                {"a deletion", DeletePod{}, false},
                {"the job's deletion", DeleteJob{}, false}};
  for (const auto& c : kCases) {
    JobMemory memory;
    RememberRefusal(std::span(&c.undone, 1), "no", At(5), memory);
    EXPECT_EQ(memory.refused_grants.has_value(), c.holds_up) << c.name;
  }
}

TEST(JobMemory, ANodeThatALearnerLeftUnaskedIsAvoidedAsIfItHadFailedThere) {
  JobView view = TrainingView(2);
  See(view, 5);
  view.memory.leaving_since[Name(1)] = At(6);
  view.learners = {Learner(0, Life::kSucceeded, "gpu-1"), Learner(1, Life::kSucceeded, "gpu-2")};
  for (const double seconds : {10.0, 20.0}) {
    See(view, seconds);
    ASSERT_TRUE(view.memory.nodes.contains("gpu-1"));
    EXPECT_EQ(view.memory.nodes.at("gpu-1").count, 1);
    EXPECT_EQ(view.memory.nodes.at("gpu-1").avoid_until, At(15));
    EXPECT_FALSE(view.memory.nodes.contains("gpu-2")) << "it was told to leave";
  }
}

TEST(JobMemory, AFinishedJobDoesNotWait) {
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.phase = api::JobPhase::kSucceeded;
  See(view, 5);
  EXPECT_FALSE(view.memory.waiting_since);
}

}  // namespace
}  // namespace pliant::controller
