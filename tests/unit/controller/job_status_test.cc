#include "operator/controller/lifecycle/job_status.h"

#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "operator/controller/lifecycle/problems.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

TEST(JobStatus, CountsEachResizeOnce) {
  JobView view = TrainingView(2);
  Edit(view.job).status.progress.membership_id = "1.2";
  Edit(view.coordinator.progress).membership_id = "1.10";
  Edit(view.coordinator.progress).resizes = {
      {.membership = {1, 2}, .from = 1, .to = 2},  // reported before
      {.membership = {1, 9}, .from = 0, .to = 2},  // the first membership of a run
      {.membership = {1, 9}, .from = 2, .to = 2},  // a replacement
      {.membership = {1, 10}, .from = 2, .to = 4}};
  api::JobStatus status = view.job->status;
  ReportProgress(view, status);
  EXPECT_EQ(status.resizes, 1);
  EXPECT_EQ(status.progress.membership_id, "1.10");
  Edit(view.job).status = status;
  ReportProgress(view, status);
  EXPECT_EQ(status.resizes, 1);
}

TEST(JobStatus, KeepsWhatItKnewWhileTheCoordinatorIsSilent) {
  JobView view = TrainingView(2);
  Edit(view.job).status.progress.step = 7;
  Edit(view.job).status.learners = 2;
  view.coordinator = {};
  api::JobStatus status = view.job->status;
  ReportProgress(view, status);
  EXPECT_EQ(status.progress.step, 7);
  EXPECT_EQ(status.learners, 2);
  view.learners.clear();
  ReportProgress(view, status);
  EXPECT_EQ(status.learners, 0);
}

TEST(JobStatus, TimesOfThePlan) {
  const JobView view = TrainingView(2);
  api::JobStatus status;
  ReportPlan(view, {.to = 2}, At(1.9), status);
  EXPECT_EQ(status.share.start_time, At(1));
  EXPECT_EQ(status.share.resize_time, std::nullopt);
  ReportPlan(view, {.to = 4}, At(3), status);
  EXPECT_EQ(status.share.start_time, At(1));
  EXPECT_EQ(status.share.resize_time, At(3));
  ReportPlan(view, {.to = 0}, At(4), status);
  EXPECT_EQ(status.share.start_time, std::nullopt);
}

TEST(JobStatus, EstimatesAreWholeMinutes) {
  const JobView view = TrainingView(0);
  api::JobStatus status;
  ReportPlan(view, {.to = 0, .starts_at = At(61)}, At(1), status);
  EXPECT_EQ(status.waiting.estimated.start->time_since_epoch() % std::chrono::minutes(1),
            WallTime::duration::zero());
  EXPECT_GE(*status.waiting.estimated.start, At(61));
  EXPECT_LT(*status.waiting.estimated.start, At(121));
  ReportPlan(view, {.to = 1, .ends_at = At(200)}, At(61), status);
  EXPECT_EQ(status.waiting.estimated.start, std::nullopt);
  EXPECT_GE(*status.waiting.estimated.completion, At(200));
}

// The first product on which it trains, and no later one.
TEST(JobStatus, GpuProduct) {
  const JobView view = TrainingView(2);
  api::JobStatus status;
  ReportPlan(view, {.to = 2, .gpu_product = "L4"}, At(1), status);
  EXPECT_EQ(status.gpu_product, "");
  status.learners = 1;
  ReportPlan(view, {.to = 2, .gpu_product = "H100"}, At(2), status);
  EXPECT_EQ(status.gpu_product, "H100");
  ReportPlan(view, {.to = 2, .gpu_product = "L4"}, At(3), status);
  EXPECT_EQ(status.gpu_product, "H100");
  status.learners = 0;
  ReportPlan(view, {.to = 0}, At(4), status);
  EXPECT_EQ(status.gpu_product, "H100");
}

TEST(JobStatus, ThePoolInWhichItHadLearnersIsKept) {
  JobView view = TrainingView(0);
  view.membership.pool = "slices";
  api::JobStatus status;
  ReportPlan(view, {.to = 0}, At(1), status);
  EXPECT_EQ(status.pool, "") << "it has none yet";
  ReportPlan(view, {.to = 2}, At(2), status);
  EXPECT_EQ(status.pool, "slices");
  view.membership.pool = "others";
  ReportPlan(view, {.to = 0}, At(3), status);
  EXPECT_EQ(status.pool, "slices");
}

TEST(JobStatus, PhaseWhileNothingIsHeard) {
  using enum api::JobPhase;
  JobPlan plan;
  plan.decision.to = 2;
  const struct {
    api::JobPhase before;
    bool live;
    int failed;
    api::JobPhase want;
  } kCases[] = {{kQueued, true, 0, kStarting},      {kStarting, true, 0, kStarting},
                {kRunning, true, 0, kRunning},      {kResizing, true, 0, kResizing},
                {kRunning, false, 0, kRecovering},  {kRecovering, true, 0, kRecovering},
                {kResizing, false, 0, kResizing},  // all are replaced by others
                {kResizing, false, 1, kRecovering}, {kSuspended, false, 0, kStarting}};
  for (const auto& c : kCases) {
    JobView view = TrainingView(c.live ? 2 : 0);
    view.coordinator = {};
    Edit(view.job).status.phase = c.before;
    Edit(view.job).status.share.desired_learners = 2;
    EXPECT_EQ(PhaseOf(view, plan, {.newly_failed = c.failed}), c.want) << ToString(c.before);
  }
}

// It had no GPUs in the last plan: nothing that failed is made good.
TEST(JobStatus, AJobThatIsResumedStarts) {
  JobPlan plan;
  plan.decision.to = 2;
  for (const int leaving : {0, 2}) {
    JobView view = TrainingView(leaving);
    view.coordinator = {};
    Edit(view.job).status.phase = api::JobPhase::kResizing;
    Edit(view.job).status.share.desired_learners = 0;
    EXPECT_EQ(PhaseOf(view, plan, {}), api::JobPhase::kStarting) << leaving;
  }
}

TEST(JobStatus, ASuspensionIsNoResize) {
  for (const auto& [learners, want] :
       {std::pair(2, api::JobPhase::kSuspending), std::pair(0, api::JobPhase::kSuspended)}) {
    JobView view = TrainingView(learners);
    Edit(view.job).spec.suspend = true;
    EXPECT_EQ(PhaseOf(view, std::nullopt, {}), want);
  }
}

TEST(JobStatus, ReportsTheShareWithItsLimit) {
  const JobView view = TrainingView(2);
  api::JobStatus status;
  ReportPlan(
      view, {.to = 2, .entitled_gpus = 3, .demand = 4, .limited_by = planner::GrowthLimit::kOthers},
      At(1), status);
  EXPECT_EQ(status.share.entitled_gpus, 3);
  EXPECT_EQ(status.share.demand_learners, 4);
  EXPECT_EQ(status.share.limited_by, "Others");
  EXPECT_EQ(status.share.jobs_before, std::nullopt);
  ReportPlan(view, {.to = 0, .demand = 4, .jobs_before = 2}, At(2), status);
  EXPECT_EQ(status.share.limited_by, "");
  EXPECT_EQ(status.share.jobs_before, 2);
}

// It counts from when the operator first saw it wait, through plans, until it has GPUs.
TEST(JobStatus, WaitingSince) {
  JobView view = TrainingView(0);
  api::JobStatus status;
  view.soft_state.meter.waiting_since = At(5);
  ReportPlan(view, {.to = 0}, At(7), status);
  EXPECT_EQ(status.waiting.since, At(5));
  view.soft_state.meter.waiting_since = At(9);
  ReportPlan(view, {.to = 0}, At(10), status);
  EXPECT_EQ(status.waiting.since, At(5));
  ReportPlan(view, {.to = 1}, At(11), status);
  EXPECT_EQ(status.waiting.since, std::nullopt);
  ReportPlan(view, {.to = 0}, At(12), status);
  EXPECT_EQ(status.waiting.since, At(9));
  Edit(view.job).spec.suspend = true;
  ReportPlan(view, {.to = 0}, At(13), status);
  EXPECT_EQ(status.waiting.since, std::nullopt);
}

TEST(JobStatus, HasPlaceSaysWhyInThePlannersWords) {
  JobPlan plan;
  plan.decision.reason.code = planner::ReasonCode::kQueuedBehind;
  JobView view = TrainingView(0);
  api::JobStatus status;
  const auto told = [&] {
    const api::Condition* place = api::FindCondition(status, kConditionHasPlace);
    return std::pair(place->status, place->reason);
  };
  using enum api::ConditionStatus;
  ReportConditions(view, plan, {}, At(1), status);
  EXPECT_EQ(told(), std::pair(kFalse, std::string("QueuedBehind")));
  plan.decision.to = 1;
  plan.decision.reason.code = planner::ReasonCode::kBorrowed;
  ReportConditions(view, plan, {}, At(2), status);
  EXPECT_EQ(told(), std::pair(kTrue, std::string("Borrowed")));
  ReportConditions(view, std::nullopt, {}, At(3), status);
  EXPECT_EQ(told(), std::pair(kFalse, std::string("NotAdmitted")));
  Edit(view.job).spec.suspend = true;  // then it is not planned once its learners have left
  ReportConditions(view, std::nullopt, {}, At(4), status);
  EXPECT_EQ(told(), std::pair(kFalse, std::string("Suspended")));
}

// Numbers of the share change for all jobs when one comes or goes: that alone is no news.
TEST(JobStatus, NumbersOfTheShareAreWrittenWithOtherFigures) {
  api::JobStatus before;
  before.share = {.entitled_gpus = 4, .demand_learners = 4, .jobs_before = 3};
  api::JobStatus after = before;
  after.share.entitled_gpus = 3;
  after.share.jobs_before = 2;
  EXPECT_FALSE(DecideWrite({.before = before, .after = after}, "u", At(0), At(1)).write);
  EXPECT_TRUE(DecideWrite({.before = before, .after = after}, "u", At(0), At(60)).write);
}

struct ProblemCase {
  const char* name;
  std::function<void(JobView&)> arrange;
  std::string last_failure;
  std::string reason;
};

void Waits(api::Pod& pod, const char* reason) {
  pod.containers = {{.name = "learner", .waiting_reason = reason, .waiting_message = "because"}};
}

// The first learner's gate was opened then, and it has these conditions, on a node or on none.
void StartsSince(JobView& view, int second, const char* node,
                 std::vector<api::PodCondition> conditions) {
  view.learners[0].node_name = node;
  view.learners[0].conditions = std::move(conditions);
  view.soft_state.clocks.starting_since[Name(0)] = At(second);
}

TEST(Problems, TheMostTellingOneIsReported) {
  const ProblemCase kCases[] = {
      {"none", [](JobView&) {}, "", ""},
      {"image", [](JobView& view) { Waits(view.learners[1], "ErrImagePull"); }, "",
       "ImagePullFailed"},
      {"image of the coordinator",
       [](JobView& view) { Waits(view.coordinators[0], "InvalidImageName"); }, "",
       "ImagePullFailed"},
      {"crash loop", [](JobView& view) { Waits(view.coordinators[0], "CrashLoopBackOff"); }, "",
       "CrashLoop"},
      {"configuration",
       [](JobView& view) { Waits(view.learners[0], "CreateContainerConfigError"); }, "",
       "ContainerCannotStart"},
      {"a pod that is being deleted does not count",
       [](JobView& view) {
         Waits(view.learners[1], "ErrImagePull");
         view.learners[1].meta.deleted = At(1);
       },
       "", ""},
      {"missing claim",
       [](JobView& view) {
         view.learners[0].conditions = {{.type = "PodScheduled",
                                         .reason = "Unschedulable",
                                         .message = "persistentvolumeclaim \"x\" not found"}};
       },
       "", "VolumeMissing"},
      {"no room",
       [](JobView& view) {
         view.learners[0].conditions = {
             {.type = "PodScheduled", .reason = "Unschedulable", .message = "0/2 nodes"}};
       },
       "", "Unschedulable"},
      {"nobody schedules", [](JobView& view) { StartsSince(view, 0, "", {}); }, "",
       "SchedulerSilent"},
      {"nobody schedules what was gated",
       [](JobView& view) {
         StartsSince(view, 0, "", {{.type = "PodScheduled", .reason = "SchedulingGated"}});
       },
       "", "SchedulerSilent"},
      {"not scheduled yet", [](JobView& view) { StartsSince(view, 95, "", {}); }, "", ""},
      {"gated is no problem",
       [](JobView& view) {
         view.learners[0].conditions = {{.type = "PodScheduled", .reason = "SchedulingGated"}};
       },
       "", ""},
      {"not mounted for a while",
       [](JobView& view) {
         StartsSince(view, 0, "n", {{.type = "PodReadyToStartContainers"}});
         view.soft_state.mount_causes[Name(0)] = {};
       },
       "", "VolumeNotMounted"},
      {"not mounted, cause not requested yet",
       [](JobView& view) { StartsSince(view, 0, "n", {{.type = "PodReadyToStartContainers"}}); },
       "", ""},
      {"not mounted yet",
       [](JobView& view) { StartsSince(view, 95, "n", {{.type = "PodReadyToStartContainers"}}); },
       "", ""},
      {"does not contact its coordinator",
       [](JobView& view) {
         view.learners[1].containers[0].running_since = At(40);
         view.coordinator = Training({0});
       },
       "", "LearnerNotConnected"},
      {"a new coordinator has to be found first",
       [](JobView& view) {
         view.learners[1].containers[0].running_since = At(0);
         view.coordinators[0].containers[0].running_since = At(90);
         view.coordinator = Training({0});
       },
       "", ""},
      {"may still load",
       [](JobView& view) {
         view.learners[1].containers[0].running_since = At(41);
         view.coordinator = Training({0});
       },
       "", ""},
      {"a coordinator that does not answer cannot tell",
       [](JobView& view) {
         view.learners[1].containers[0].running_since = At(0);
         view.coordinator = Training({0});
         view.coordinator.reachable = false;
       },
       "", ""},
      {"refused", [](JobView& view) { view.soft_state.refusals.message = "exceeded quota"; }, "",
       "RefusedByServer"},
      {"not answered for",
       [](JobView& view) {
         view.soft_state.refusals.message = "failed calling webhook";
         view.soft_state.refusals.unanswered = true;
       },
       "", "UnansweredByServer"},
      {"the coordinator's own",
       [](JobView& view) { Edit(view.coordinator.progress).problem_reason = "FingerprintDiffers"; },
       "", "FingerprintDiffers"},
      {"failure", [](JobView&) {}, "it crashed", "LearnerFailed"},
      {"silence",
       [](JobView& view) {
         view.coordinator.reachable = false;
         view.coordinator.silent_since = At(80);
       },
       "", "CoordinatorUnreachable"},
  };
  for (const ProblemCase& c : kCases) {
    JobView view = TrainingView(2);
    c.arrange(view);
    const auto problem = FindProblem(view, c.last_failure, At(100));
    EXPECT_EQ(problem ? problem->reason : "", c.reason) << c.name;
  }
}

TEST(Problems, TheKubeletsMessageExplainsAnUnmountedVolume) {
  JobView view = TrainingView(1);
  view.learners[0].conditions = {{.type = "PodReadyToStartContainers"}};
  view.soft_state.clocks.starting_since[Name(0)] = At(0);
  ASSERT_EQ(FindUnmounted(view, At(100)), &view.learners[0]);
  EXPECT_EQ(FindUnmounted(view, At(10)), nullptr);
  view.soft_state.mount_causes[Name(0)] = {.text = "configmap \"model\" not found"};
  EXPECT_EQ(FindProblem(view, "", At(100))->message,
            "pod digits-1a2b3-0 waits on node gpu-1: configmap \"model\" not found");
}

TEST(JobStatus, AJobThatWaitsInVainIsNotMerelyQueued) {
  using enum planner::ReasonCode;
  const struct {
    planner::ReasonCode code;
    const char* reason;
  } kCases[] = {{kQueued, "Queued"},
                {kQueuedBehind, "Queued"},
                {kNoNodeFits, "NoNodeFits"},
                {kTooLarge, "TooLarge"},
                {kGrantWithdrawn, "GrantWithdrawn"}};
  for (const auto& c : kCases) {
    JobView view = TrainingView(0);
    api::JobStatus status = view.job->status;
    status.phase = api::JobPhase::kQueued;
    JobPlan plan;
    plan.decision.reason.code = c.code;
    ReportConditions(view, plan, {}, At(1), status);
    EXPECT_EQ(api::FindCondition(status, kConditionProgressing)->reason, c.reason);
  }
}

TEST(JobStatus, KeepsAStartProblemWhileNoLearnerIsTried) {
  JobView view = TrainingView(0);
  JobPlan plan;
  plan.decision.reason.code = planner::ReasonCode::kGrantWithdrawn;
  // Resizing: pods whose grant was withdrawn are still leaving.
  for (const api::JobPhase phase : {api::JobPhase::kResizing, api::JobPhase::kQueued}) {
    api::JobStatus status = view.job->status;
    status.phase = phase;
    SetCondition(status, kConditionProgressing,
                 {api::ConditionStatus::kFalse, "ImagePullFailed", "no such image"}, 1, At(0));
    ReportConditions(view, plan, {}, At(1), status);
    EXPECT_EQ(api::FindCondition(status, kConditionProgressing)->reason, "ImagePullFailed");
    EXPECT_EQ(api::FindCondition(status, kConditionProgressing)->message, "no such image");
  }
}

TEST(JobStatus, KeepsTheLearnersAskedWhileTheCoordinatorDoesNotKnowThem) {
  JobView view = TrainingView(2);
  const auto report = [&](const Progress& progress) {
    view.coordinator.progress = Shared(progress);
    ReportProgress(view, Edit(view.job).status);
    return view.job->status.progress.learners_asked;
  };
  EXPECT_EQ(report({.total_steps = 10, .learners_asked = 2}), 2);
  EXPECT_EQ(report({}), 2) << "the coordinator was restarted";
  EXPECT_EQ(report({.total_steps = 10}), std::nullopt) << "the program wants all learners again";
}

struct WriteCase {
  const char* name;
  std::function<void(api::JobStatus&)> change;
  bool same_reason;
  double at;  // seconds since the last write of progress
  bool writes;
};

TEST(JobStatus, IsWrittenForWhatIsNewsAndSeldomForFigures) {
  const WriteCase kCases[] = {
      {"nothing", [](api::JobStatus&) {}, true, 1000, false},
      {"a step, too early", [](api::JobStatus& s) { s.progress.step = 11; }, true, 29, false},
      {"a step, in time", [](api::JobStatus& s) { s.progress.step = 11; }, true, 40, true},
      {"only time has passed", [](api::JobStatus& s) { s.waiting.attained_gpu_seconds = 99; }, true,
       1000, false},
      {"a size", [](api::JobStatus& s) { s.learners = 1; }, true, 1, true},
      {"a phase", [](api::JobStatus& s) { s.phase = api::JobPhase::kResizing; }, true, 1, true},
      {"another reason", [](api::JobStatus& s) { s.reason = "cooldown"; }, false, 1, true},
      {"the reason with other numbers", [](api::JobStatus& s) { s.reason = "1/3"; }, true, 1,
       false},
      {"the same, in time", [](api::JobStatus& s) { s.reason = "1/3"; }, true, 40, true},
      {"the same after an edit",
       [](api::JobStatus& s) {
         s.reason = "1/3";
         s.observed_generation = 2;
       },
       true, 1, true},
  };
  const api::JobStatus before = AdmittedJob(2).status;
  for (const WriteCase& c : kCases) {
    api::JobStatus after = before;
    c.change(after);
    const WriteDecision decision = DecideWrite(
        {.before = before, .after = after, .same_reason = c.same_reason}, kUid, At(0), At(c.at));
    EXPECT_EQ(decision.write, c.writes) << c.name;
    if (!decision.write && after.progress.step != before.progress.step) {
      EXPECT_GE(decision.due, At(30)) << c.name;
      EXPECT_LT(decision.due, At(40)) << c.name;
    }
  }
}

TEST(Problems, PatienceEndsAtTheEarliest) {
  JobView view = TrainingView(2);
  view.coordinators[0].containers[0].running_since = At(0);
  EXPECT_EQ(NextProblemCheck(view, At(100)), std::nullopt);
  view.learners[0].containers[0].running_since = At(70);
  EXPECT_EQ(NextProblemCheck(view, At(100)), At(130));
  view.soft_state.clocks.starting_since[Name(1)] = At(95);
  EXPECT_EQ(NextProblemCheck(view, At(100)), At(115));
  view.coordinator.silent_since = At(99);
  EXPECT_EQ(NextProblemCheck(view, At(100)), At(114));
  EXPECT_EQ(NextProblemCheck(view, At(114)), At(115)) << "the problem is due to be reported";
}

TEST(Problems, AnImageThatBacksOffKeepsItsFirstMessage) {
  JobView view = TrainingView(1);
  Edit(view.job).status.phase = api::JobPhase::kStarting;
  api::JobStatus status = view.job->status;
  Waits(view.learners[0], "ErrImagePull");
  ReportConditions(view, {}, {}, At(1), status);
  const api::JobStatus told = status;
  EXPECT_EQ(api::FindCondition(told, kConditionProgressing)->message,
            "pod digits-1a2b3-0, container learner: because");
  Waits(view.learners[0], "ImagePullBackOff");
  view.learners[0].containers[0].waiting_message = "Back-off pulling image";
  ReportConditions(view, {}, {}, At(2), status);
  EXPECT_EQ(status, told);
}

}  // namespace
}  // namespace pliant::controller
