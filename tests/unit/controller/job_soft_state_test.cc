#include "operator/controller/model/job_soft_state.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

// Observes the job in its present state at time `seconds`.
void See(JobView& view, double seconds) { ObserveJob(view, At(seconds)); }

TEST(JobSoftState, AJobWaitsFromItsSubmissionUntilItIsPlanned) {
  JobView view{.job = Shared(AdmittedJob(0))};
  See(view, 5);
  EXPECT_EQ(view.soft_state.meter.waiting_since, At(0));
  See(view, 9);
  EXPECT_EQ(view.soft_state.meter.waiting_since, At(0));
  Edit(view.job).status.share.desired_learners = 2;
  See(view, 10);
  EXPECT_FALSE(view.soft_state.meter.waiting_since);
}

TEST(JobSoftState, AJobThatGaveItsGpusBackWaitsFromThen) {
  JobView view = TrainingView(2);
  See(view, 5);
  Edit(view.job).spec.suspend = true;
  Edit(view.job).status.share.desired_learners = 0;
  See(view, 10);
  EXPECT_FALSE(view.soft_state.meter.waiting_since) << "it wants no GPUs";
  Edit(view.job).spec.suspend = false;
  See(view, 60);
  EXPECT_EQ(view.soft_state.meter.waiting_since, At(60));
}

TEST(JobSoftState, ALearnerIsGoneWhenItWasThereAndTheCoordinatorStillNamesIt) {
  JobView view = TrainingView(2);
  Edit(view.coordinator.progress).learners = {
      {.name = "a", .pod_uid = "uid-0", .state = "Member"},
      {.name = "b", .pod_uid = "uid-1", .state = "Member"},
      {.name = "c", .pod_uid = "unseen", .state = "Member"}};
  See(view, 1);
  EXPECT_TRUE(view.soft_state.contacts.gone.empty());
  view.learners.pop_back();
  for (const double at : {2, 3}) {
    See(view, at);
    EXPECT_EQ(view.soft_state.contacts.gone, std::set<std::string>{"uid-1"});
  }
  auto& named = Edit(view.coordinator.progress).learners;
  named.erase(named.begin() + 1);
  See(view, 4);
  EXPECT_TRUE(view.soft_state.contacts.gone.empty()) << "the coordinator no longer names it";
}

TEST(JobSoftState, ReadsNeedsFromLivingLearners) {
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
  EXPECT_EQ(NeedsOfLearner(view)->resources.cpu_millis, 200) << "the newest learner counts";
  // They say nothing about another template.
  SetTemplate(R"({"spec":{"containers":[{"name":"learner","image":"example/train:2"}]}})",
              Edit(view.job).spec);
  Edit(view.job).status.objects.admitted_template = "another";
  See(view, 2);
  EXPECT_TRUE(NeedsAreGuessed(view));
  EXPECT_EQ(NeedsOfLearner(view), view.needs);
}

// A leader whose clock was an hour ahead has written these times.
TEST(JobSoftState, ATimeThatLiesAheadCountsFromWhenItWasReadFirst) {
  JobView view = TrainingView(1);
  Edit(view.job).status.share.start_time = At(5);
  Edit(view.job).status.share.resize_time = At(3600);
  See(view, 10);
  EXPECT_EQ(TimeOf(view, view.job->status.share.start_time), At(5));
  EXPECT_EQ(TimeOf(view, view.job->status.share.resize_time), At(10));
  See(view, 4000);
  EXPECT_EQ(TimeOf(view, view.job->status.share.resize_time), At(10));
  EXPECT_EQ(TimeOf(view, std::nullopt), std::nullopt);
  Edit(view.job).status.share.resize_time = At(4100);
  See(view, 4050);
  EXPECT_EQ(TimeOf(view, view.job->status.share.resize_time), At(4050));
  EXPECT_EQ(view.soft_state.times_ahead.size(), 1u);
}

TEST(JobSoftState, AfterARestartOfTheOperatorAJobThatHasTrainedWaitsFromNow) {
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.waiting.attained_gpu_seconds = 100;
  See(view, 500);
  EXPECT_EQ(view.soft_state.meter.waiting_since, At(500));
}

TEST(JobSoftState, ANewLeaderLearnsFromThePodsWhatAJobHasAttained) {
  JobView view = TrainingView(2);
  Edit(view.job).spec.elastic.gpus_per_learner = 4;
  Edit(view.job).status.waiting.attained_gpu_seconds = 100;
  for (api::Pod& pod : view.learners) pod.containers[0].running_since = At(50);
  See(view, 60);
  EXPECT_DOUBLE_EQ(view.soft_state.meter.gpu_seconds, 100) << "its status says more";
  view.soft_state = {};
  See(view, 150);
  EXPECT_DOUBLE_EQ(view.soft_state.meter.gpu_seconds, 800);
}

TEST(JobSoftState, AJobAttainsGpuSecondsAlsoWhileNobodyLooks) {
  JobView view = TrainingView(2);
  See(view, 0);
  view.learners.pop_back();  // it ended just now
  See(view, 100);
  EXPECT_DOUBLE_EQ(view.soft_state.meter.gpu_seconds, 200);
  See(view, 110);
  EXPECT_DOUBLE_EQ(view.soft_state.meter.gpu_seconds, 210);
}

TEST(JobSoftState, ANodeThatALearnerLeftUnaskedIsAvoidedAsIfItHadFailedThere) {
  JobView view = TrainingView(2);
  See(view, 5);
  view.soft_state.clocks.leaving_since[Name(1)] = At(6);
  view.learners = {Learner(0, Life::kSucceeded, "gpu-1"), Learner(1, Life::kSucceeded, "gpu-2")};
  for (const double seconds : {10.0, 20.0}) {
    See(view, seconds);
    ASSERT_TRUE(view.soft_state.nodes.strikes.contains("gpu-1"));
    EXPECT_EQ(view.soft_state.nodes.strikes.at("gpu-1").count, 1);
    EXPECT_EQ(view.soft_state.nodes.strikes.at("gpu-1").avoid_until, At(15));
    EXPECT_FALSE(view.soft_state.nodes.strikes.contains("gpu-2")) << "it had been asked to leave";
  }
}

TEST(JobSoftState, AFinishedJobDoesNotWait) {
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.phase = api::JobPhase::kSucceeded;
  See(view, 5);
  EXPECT_FALSE(view.soft_state.meter.waiting_since);
}

TEST(JobSoftState, ANodeThatFailsLearnersIsAvoidedForAGrowingTime) {
  JobView view = TrainingView(0);
  view.learners = {Learner(0, Life::kFailed)};
  See(view, 100);
  EXPECT_EQ(view.soft_state.nodes.strikes.at("gpu-1").avoid_until, At(105));
  See(view, 101);
  EXPECT_EQ(view.soft_state.nodes.strikes.at("gpu-1").avoid_until, At(105))
      << "each failure strikes once";
  view.learners.push_back(Learner(1, Life::kFailed));
  view.learners[1].meta.uid = "another";
  See(view, 102);
  EXPECT_EQ(view.soft_state.nodes.strikes.at("gpu-1").avoid_until, At(105))
      << "it was on the node already";
  view.learners.push_back(Learner(2, Life::kFailed));
  view.learners[2].meta.uid = "one more";
  See(view, 106);
  EXPECT_EQ(view.soft_state.nodes.strikes.at("gpu-1").avoid_until, At(116));
  view.learners.clear();
  See(view, 900);
  EXPECT_TRUE(view.soft_state.nodes.strikes.empty()) << "strikes expire";
}

TEST(JobSoftState, KnowsWhomTheCoordinatorHasNamed) {
  JobView view = TrainingView(2);
  view.soft_state.contacts.named.clear();
  view.learners.push_back(Learner(2, Life::kRunning));
  See(view, 1);
  EXPECT_EQ(view.soft_state.contacts.named, (std::set<std::string>{"uid-0", "uid-1"}));
  view.coordinator = {};
  view.learners.erase(view.learners.begin());
  See(view, 2);
  EXPECT_EQ(view.soft_state.contacts.named, std::set<std::string>{"uid-1"})
      << "as long as their pods exist";
  view.learners[0].meta.uid = "another of the name";
  See(view, 3);
  EXPECT_TRUE(view.soft_state.contacts.named.empty());
}

TEST(JobSoftState, RemembersSinceWhen) {
  JobView view = TrainingView(2);
  Edit(view.job).spec.elastic.min_learners = 3;
  Edit(view.job).status.waiting.attained_gpu_seconds = 50;
  Edit(view.coordinator.progress).learners[1].state = "Leaving";
  view.learners.push_back(Learner(2, Life::kGated));
  See(view, 10);
  EXPECT_EQ(view.soft_state.clocks.starting_since.size(), 2u);
  EXPECT_EQ(view.soft_state.clocks.leaving_since,
            (std::map<std::string, WallTime>{{Name(1), At(10)}}))
      << "a restarted operator gets it from the coordinator";
  EXPECT_EQ(view.soft_state.clocks.below_minimum_since, At(10));
  view.learners.pop_back();
  view.learners.pop_back();
  See(view, 20);
  EXPECT_TRUE(view.soft_state.clocks.leaving_since.empty());
  EXPECT_EQ(view.soft_state.clocks.below_minimum_since, At(10));
  EXPECT_DOUBLE_EQ(view.soft_state.meter.gpu_seconds, 70) << "two learners ran for 10 s more";
}

// Otherwise its neighbors would be resized each time.
TEST(JobSoftState, AJobWhoseOwnerLowersItsClaimYieldsForAMinute) {
  const struct {
    const char* name;
    std::function<void(api::JobSpec& spec)> edit;
    bool yields;
  } kCases[] = {
      {"suspended", [](api::JobSpec& spec) { spec.suspend = true; }, true},
      {"a lower priority", [](api::JobSpec& spec) { spec.priority = 4999; }, true},
      {"a lower maximum", [](api::JobSpec& spec) { spec.elastic.max_learners = 3; }, true},
      {"a higher priority", [](api::JobSpec& spec) { spec.priority = 5001; }, false},
      {"a higher maximum", [](api::JobSpec& spec) { spec.elastic.max_learners = 9; }, false},
      {"nothing", [](api::JobSpec&) {}, false},
  };
  for (const auto& c : kCases) {
    JobView view = TrainingView(4);
    See(view, 10);
    c.edit(Edit(view.job).spec);
    See(view, 20);
    EXPECT_EQ(view.soft_state.claims.yields_until, c.yields ? std::optional(At(80)) : std::nullopt)
        << c.name;
    See(view, 80);
    EXPECT_FALSE(view.soft_state.claims.yields_until) << c.name;
  }
  JobView waiting = TrainingView(0);
  Edit(waiting.job).status.share.desired_learners = 0;
  See(waiting, 10);
  Edit(waiting.job).spec.suspend = true;
  See(waiting, 20);
  EXPECT_FALSE(waiting.soft_state.claims.yields_until) << "nobody got a GPU of it";
}

TEST(JobSoftState, ANodeThatEvictsLearnersAgainAndAgainIsAvoidedForLonger) {
  JobView view = TrainingView(1);
  See(view, 0);
  const auto evict = [&](int number, const char* reason, double at) {
    view.learners = {Learner(number, Life::kRunning)};
    view.learners[0].conditions.push_back(
        {.type = "DisruptionTarget", .status = true, .reason = reason, .message = "deleting"});
    return ObserveJob(view, At(at));
  };
  const std::vector<Eviction> told = evict(1, "DeletionByTaintManager", 10);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].node, "gpu-1");
  EXPECT_EQ(told[0].why, "DeletionByTaintManager: deleting");
  EXPECT_EQ(told[0].avoid_until, At(15));
  EXPECT_TRUE(evict(1, "DeletionByTaintManager", 11).empty()) << "one event for each";
  EXPECT_EQ(evict(2, "DeletionByTaintManager", 30).at(0).avoid_until, At(40));
  EXPECT_EQ(evict(3, "EvictionByEvictionAPI", 50).at(0).avoid_until, At(70));
  EXPECT_TRUE(evict(4, "PreemptionByScheduler", 100).empty()) << "it made room for another pod";
  EXPECT_EQ(view.soft_state.nodes.strikes.at("gpu-1").count, 3);
}

}  // namespace
}  // namespace pliant::controller
