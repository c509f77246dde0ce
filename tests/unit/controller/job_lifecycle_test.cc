#include "operator/controller/lifecycle/job_lifecycle.h"

#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controller/lifecycle/admission.h"
#include "operator/controller/lifecycle/conditions.h"
#include "operator/controller/lifecycle/job_events.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;
using testing::VariantWith;

const LifecycleOptions kOptions{.coordinator_image = "pliant:2"};

JobPlan Keep(const JobView& view) {
  JobPlan plan;
  for (const api::Pod& pod : view.learners) plan.decision.keep.push_back(pod.meta.name);
  plan.decision.from = plan.decision.to = static_cast<int>(view.learners.size());
  plan.decision.entitlement = plan.decision.to;
  return plan;
}

// Applies an outcome to the view from which it was decided, as if the server had accepted it.
void Apply(const Outcome& outcome, JobView& view) {
  if (outcome.write_status) Edit(view.job).status = outcome.status;
  view.soft_state = outcome.soft_state;
}

std::vector<std::string> EventReasons(const JobView& view, const Outcome& outcome) {
  std::vector<std::string> reasons;
  for (const ObjectEvent& event : EventsOf(view.job->status, outcome.status)) {
    reasons.push_back(event.reason);
  }
  return reasons;
}

TEST(JobLifecycle, ANewJobIsCheckedThenAdmitted) {
  JobView view{.job = Shared(NewJob())};
  Outcome outcome = ReconcileJob(view, std::nullopt, kOptions, At(1));
  EXPECT_THAT(outcome.actions, ElementsAre(Action(CheckTemplate{})));
  EXPECT_FALSE(outcome.write_status) << "there is nothing to report yet";
  Apply(outcome, view);
  EXPECT_FALSE(IsPlanned(view));

  view.soft_state.checked_template.check = TemplateCheck{.generation = 1, .accepted = true};
  EXPECT_TRUE(IsPlanned(view)) << "the first plan goes into the same write";
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(2));
  EXPECT_TRUE(outcome.write_status);
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_EQ(outcome.status.training->logical_shards, 16);
  EXPECT_EQ(outcome.status.objects.coordinator_image, "pliant:2");
  EXPECT_EQ(outcome.status.selector, LearnerSelector(view.job->meta));
  EXPECT_THAT(EventReasons(view, outcome), Contains("Admitted"));
  Apply(outcome, view);
  EXPECT_TRUE(IsPlanned(view));
}

TEST(JobLifecycle, AJobKeepsItsCoordinatorsImage) {
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).spec.suspend = true;
  Apply(ReconcileJob(view, std::nullopt, kOptions, At(1)), view);
  ASSERT_FALSE(IsAdmitted(view.job->spec, view.job->status));
  Edit(view.job).spec.suspend = false;
  view.soft_state.checked_template.check = TemplateCheck{.generation = 1, .accepted = true};
  const Outcome resumed = ReconcileJob(view, std::nullopt, kOptions, At(2));
  EXPECT_TRUE(IsAdmitted(view.job->spec, resumed.status));
  EXPECT_EQ(resumed.status.objects.coordinator_image, "pliant:1");
}

TEST(JobLifecycle, AdmissionAndTheFirstPlanAreOneWrite) {
  JobView view{.job = Shared(NewJob())};
  view.soft_state.checked_template.check = TemplateCheck{.generation = 1, .accepted = true};
  JobPlan plan;
  plan.decision.reason = {planner::ReasonCode::kQueued, "waits for 1 GPU"};
  const Outcome waits = ReconcileJob(view, plan, kOptions, At(2));
  EXPECT_TRUE(IsAdmitted(view.job->spec, waits.status));
  EXPECT_EQ(waits.status.phase, api::JobPhase::kQueued);
  EXPECT_EQ(waits.status.reason, "waits for 1 GPU");
  Apply(waits, view);
  EXPECT_FALSE(ReconcileJob(view, plan, kOptions, At(3)).write_status);

  JobView lucky{.job = Shared(NewJob())};
  lucky.soft_state.checked_template.check = view.soft_state.checked_template.check;
  plan.decision = {.to = 2, .entitlement = 2, .create = {{"gpu-1"}, {"gpu-1"}}};
  const Outcome starts = ReconcileJob(lucky, plan, kOptions, At(2));
  EXPECT_TRUE(IsAdmitted(lucky.job->spec, starts.status));
  EXPECT_EQ(starts.status.share.desired_learners, 2);
  EXPECT_THAT(starts.actions, Contains(Action(CreateCoordinator{1})));
}

struct EventCase {
  const char* name;
  std::function<void(api::JobStatus& before, api::JobStatus& after)> arrange;
  std::vector<std::string> reasons;
};

void Place(api::JobStatus& status, const char* reason) {
  SetCondition(status, kConditionHasPlace, {api::ConditionStatus::kFalse, reason, ""}, 1, At(0));
}

TEST(JobEvents, SayWhatHappened) {
  const EventCase kCases[] = {
      {"the first coordinator replaces none",
       [](auto&, auto& after) { after.objects.coordinator_term = 2; },
       {}},
      {"nor does the one of a job that is resumed",
       [](auto& before, auto& after) {
         before.learners = 2;  // they still leave
         after.objects.coordinator_term = 2;
       },
       {}},
      {"one takes over from one that refuses plans",
       [](auto& before, auto& after) {
         before.share.desired_learners = after.share.desired_learners = 2;
         SetCondition(before, kConditionProgressing,
                      {api::ConditionStatus::kFalse, "PlanRefused", ""}, 1, At(0));
         after.conditions = before.conditions;
         after.objects.coordinator_term = 2;
       },
       {"CoordinatorReplaced"}},
      {"one takes over while it trains",
       [](auto& before, auto& after) {
         before.learners = before.share.desired_learners = after.share.desired_learners = 2;
         after.objects.coordinator_term = 2;
       },
       {"CoordinatorReplaced"}},
      {"others get its GPUs",
       [](auto& before, auto& after) {
         before.share.desired_learners = 2;
         Place(after, "Reclaimed");
       },
       {"Reclaimed"}},
      {"it was below its minimum for too long",
       [](auto& before, auto& after) {
         before.share.desired_learners = 1;
         Place(after, "Released");
       },
       {"Released"}},
      {"it shrinks",
       [](auto& before, auto& after) {
         before.share.desired_learners = 2;
         after.share.desired_learners = 1;
       },
       {"Resizing"}},
  };
  for (const EventCase& c : kCases) {
    api::JobStatus before{.objects = {.coordinator_term = 1}};
    api::JobStatus after = before;
    c.arrange(before, after);
    std::vector<std::string> reasons;
    for (const ObjectEvent& event : EventsOf(before, after)) reasons.push_back(event.reason);
    EXPECT_EQ(reasons, c.reasons) << c.name;
  }
}

TEST(JobEvents, ASuspensionThatHadNoLearnersDoesNotSayThatTheyLeft) {
  api::JobStatus before{.phase = api::JobPhase::kQueued};
  api::JobStatus after{.phase = api::JobPhase::kSuspended};
  EXPECT_EQ(EventsOf(before, after).at(0).note, "it waits until spec.suspend is false");
  before.phase = api::JobPhase::kSuspending;
  EXPECT_EQ(EventsOf(before, after).at(0).note, "all learners have left");
}

TEST(JobLifecycle, ChangedSharesOfOthersAreReportedLater) {
  JobView view = TrainingView(3);
  JobPlan plan = Keep(view);
  plan.decision.reason = {planner::ReasonCode::kFairShare, "3 of 8 GPUs: 1/3"};
  Apply(ReconcileJob(view, plan, kOptions, At(5)), view);
  EXPECT_EQ(view.job->status.reason, "3 of 8 GPUs: 1/3");
  plan.decision.reason.sentence = "3 of 8 GPUs: 1/4";
  Outcome outcome = ReconcileJob(view, plan, kOptions, At(6));
  EXPECT_FALSE(outcome.write_status);
  EXPECT_EQ(outcome.look_again, outcome.soft_state.reporting.next_progress_write);
  Apply(outcome, view);
  outcome = ReconcileJob(view, plan, kOptions, *outcome.look_again);
  EXPECT_TRUE(outcome.write_status);
  Apply(outcome, view);
  EXPECT_EQ(view.job->status.reason, "3 of 8 GPUs: 1/4");

  // A reason of another kind is written at once.
  plan.decision.reason = {planner::ReasonCode::kNodesFull, "3 of 8 GPUs: full"};
  EXPECT_TRUE(ReconcileJob(view, plan, kOptions, At(60)).write_status);
}

// The operator that saw the suspension in between may no longer run.
TEST(JobLifecycle, ATemplateThatWasChangedUnseenIsAdmittedAgain) {
  JobView view = TrainingView(2);
  Edit(view.job).status.objects.admitted_template = "of another template";
  EXPECT_FALSE(IsAdmitted(view.job->spec, view.job->status));
  JobPlan plan;
  plan.decision = {.job = {}, .from = 2, .to = 0, .drop = {Name(0), Name(1)}};
  Outcome outcome = ReconcileJob(view, plan, kOptions, At(5));
  EXPECT_EQ(outcome.status.conditions[0].reason, "TemplateChanged");
  EXPECT_THAT(outcome.actions, Not(Contains(Action(CheckTemplate{}))))
      << "the old learners must leave first";
  EXPECT_TRUE(IsPlanned(view));
  EXPECT_FALSE(TrainingOf(view));
  Apply(outcome, view);

  view.learners.clear();
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(6));
  EXPECT_THAT(outcome.actions, Contains(Action(CheckTemplate{})));
  Apply(outcome, view);
  view.soft_state.checked_template.check = TemplateCheck{.generation = 1, .accepted = true};
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(7));
  EXPECT_EQ(outcome.status.objects.admitted_template, view.job->spec.learner_template.hash);
  EXPECT_EQ(outcome.status.conditions[0].reason, "Admitted");
}

TEST(JobLifecycle, ASpecThatIsNotUnderstoodIsReported) {
  JobView view{.job = Shared(NewJob()), .unreadable = "spec.priority: not a whole number"};
  Edit(view.job).unreadable = view.unreadable;
  Outcome outcome = ReconcileJob(view, std::nullopt, kOptions, At(1));
  EXPECT_TRUE(outcome.write_status);
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_FALSE(IsPlanned(view));
  ASSERT_EQ(outcome.status.conditions.size(), 1u);
  EXPECT_EQ(outcome.status.conditions[0].type, "Readable");
  EXPECT_EQ(outcome.status.conditions[0].status, api::ConditionStatus::kFalse);
  EXPECT_THAT(outcome.status.conditions[0].message, testing::StartsWith(view.unreadable));
  EXPECT_EQ(outcome.status.reason, view.unreadable);
  Apply(outcome, view);
  EXPECT_FALSE(ReconcileJob(view, std::nullopt, kOptions, At(2)).write_status);

  // The job could be decoded before: it continues to train.
  view = TrainingView(2);
  view.unreadable = "spec.priority: not a whole number";
  outcome = ReconcileJob(view, Keep(view), kOptions, At(3));
  EXPECT_TRUE(IsPlanned(view));
  EXPECT_EQ(api::FindCondition(outcome.status, "Readable")->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kRunning);
  Apply(outcome, view);
  view.unreadable.clear();
  outcome = ReconcileJob(view, Keep(view), kOptions, At(4));
  EXPECT_EQ(api::FindCondition(outcome.status, "Readable")->status, api::ConditionStatus::kTrue);
}

TEST(JobLifecycle, ASpecBeyondItsLimitsIsReportedUntilItIsChanged) {
  JobView view = TrainingView(2);
  Edit(view.job).spec.limited = "resize.minRuntimeSeconds counts as 600, not as 86400";
  Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(1));
  EXPECT_TRUE(outcome.write_status);
  EXPECT_THAT(EventReasons(view, outcome), Contains("BeyondLimits"));
  const api::Condition* limited = api::FindCondition(outcome.status, "Limited");
  ASSERT_NE(limited, nullptr);
  EXPECT_EQ(limited->status, api::ConditionStatus::kTrue);
  EXPECT_EQ(limited->message, view.job->spec.limited);
  Apply(outcome, view);
  EXPECT_FALSE(ReconcileJob(view, Keep(view), kOptions, At(2)).write_status);

  Edit(view.job).spec.limited.clear();
  outcome = ReconcileJob(view, Keep(view), kOptions, At(3));
  EXPECT_EQ(api::FindCondition(outcome.status, "Limited")->status, api::ConditionStatus::kFalse);
  EXPECT_THAT(EventReasons(view, outcome), IsEmpty());

  // A job that never exceeded a limit has no such condition.
  EXPECT_EQ(api::FindCondition(ReconcileJob(TrainingView(2), Keep(view), kOptions, At(1)).status,
                               "Limited"),
            nullptr);
}

TEST(JobLifecycle, ARefusedTemplateIsReportedOnce) {
  JobView view{.job = Shared(NewJob())};
  view.soft_state.checked_template.check =
      TemplateCheck{.generation = 1, .message = "spec.containers: required", .again_at = At(100)};
  Outcome outcome = ReconcileJob(view, std::nullopt, kOptions, At(2));
  EXPECT_EQ(outcome.status.reason, "spec.containers: required");
  EXPECT_THAT(EventReasons(view, outcome), Contains("TemplateRefused"));
  EXPECT_EQ(outcome.look_again, At(100));
  Apply(outcome, view);
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(3));
  EXPECT_FALSE(outcome.write_status);
  EXPECT_THAT(outcome.actions, IsEmpty());
}

TEST(JobLifecycle, AGrantBringsTheCoordinatorFirst) {
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.objects.coordinator_term = 0;
  JobPlan plan;
  plan.decision = {.to = 2,
                   .entitlement = 2,
                   .create = {{"gpu-1"}, {"gpu-1"}},
                   .reason = {planner::ReasonCode::kMaximum, "2 of 8 GPUs: all it asks for"}};
  Outcome outcome = ReconcileJob(view, plan, kOptions, At(5));
  EXPECT_TRUE(outcome.write_status) << "the term increases before the pod is created";
  EXPECT_EQ(outcome.status.objects.coordinator_term, 1);
  EXPECT_EQ(outcome.status.share.desired_learners, 2);
  EXPECT_EQ(outcome.status.share.start_time, At(5));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kStarting);
  EXPECT_EQ(outcome.status.reason, "2 of 8 GPUs: all it asks for");
  EXPECT_THAT(outcome.actions,
              ElementsAre(Action(CreateService{1}), Action(CreateSecrets{1, ""}),
                          Action(PutNetworkPolicies{}), Action(CreateCoordinator{1})));
  Apply(outcome, view);
  view.service = Shared(ServiceFor(1));
  view.coordinators = {Coordinator(1, /*running=*/false)};
  outcome = ReconcileJob(view, plan, kOptions, At(6));
  EXPECT_TRUE(outcome.write_status) << "numbers are reserved before they are used";
  EXPECT_EQ(outcome.status.objects.next_learner, 2);
  EXPECT_THAT(outcome.actions, ElementsAre(VariantWith<CreateLearner>(testing::_),
                                           VariantWith<CreateLearner>(testing::_)));
}

TEST(JobLifecycle, WithoutAChangeNothingIsWritten) {
  JobView view = TrainingView(3);
  Apply(ReconcileJob(view, Keep(view), kOptions, At(5)), view);
  const Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(6));
  EXPECT_FALSE(outcome.write_status);
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kRunning);
  EXPECT_EQ(outcome.status.learners, 3);
}

std::vector<std::string> OfGeneration(const api::JobStatus& status, std::int64_t generation) {
  std::vector<std::string> types;
  for (const api::Condition& condition : status.conditions) {
    if (condition.observed_generation == generation) types.push_back(condition.type);
  }
  return types;
}

// `kubectl wait` ignores a condition of an older generation.
TEST(JobLifecycle, AnEditIsSeenInEveryConditionAndWrittenOnce) {
  JobView running = TrainingView(2);
  Edit(running.coordinator.progress).last_checkpoint = ReportedCheckpoint{};
  Apply(ReconcileJob(running, Keep(running), kOptions, At(5)), running);
  Edit(running.coordinator.progress).last_checkpoint.reset();

  JobView finished = running;
  finished.learners[1] = Ended(finished.learners[1], 0, R"({"reason":"Completed","step":12})");
  Apply(ReconcileJob(finished, Keep(finished), kOptions, At(6)), finished);
  ASSERT_TRUE(finished.job->status.finished());

  const struct {
    const char* name;
    JobView view;
    std::optional<JobPlan> plan;
    std::vector<std::string> want;
  } kCases[] = {
      {"a job that trains",
       running,
       Keep(running),
       {"Admitted", "CheckpointsWritten", "HasPlace", "Progressing", "Running"}},
      {"a finished job",
       finished,
       std::nullopt,
       {"Admitted", "CheckpointsWritten", "Complete", "HasPlace", "Progressing", "Running"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    JobView view = c.view;
    EXPECT_FALSE(ReconcileJob(view, c.plan, kOptions, At(7)).write_status);
    Edit(view.job).meta.generation = 2;
    Edit(view.job).spec.ttl_after_finished = std::chrono::seconds(600);
    const Outcome outcome = ReconcileJob(view, c.plan, kOptions, At(8));
    EXPECT_TRUE(outcome.write_status);
    EXPECT_EQ(outcome.status.observed_generation, 2);
    EXPECT_EQ(OfGeneration(outcome.status, 2), c.want);
    EXPECT_THAT(EventReasons(view, outcome), IsEmpty());
    Apply(outcome, view);
    EXPECT_FALSE(ReconcileJob(view, c.plan, kOptions, At(9)).write_status);
  }
}

TEST(JobLifecycle, AnEditedJobKeepsItsAdmittedConditionUntilItIsChecked) {
  JobView view{.job = Shared(NewJob())};
  view.soft_state.checked_template.check =
      TemplateCheck{.generation = 1, .message = "no such class", .again_at = At(100)};
  Apply(ReconcileJob(view, std::nullopt, kOptions, At(2)), view);
  EXPECT_THAT(OfGeneration(view.job->status, 1), Contains("Admitted"));
  Edit(view.job).meta.generation = 2;
  Apply(ReconcileJob(view, std::nullopt, kOptions, At(3)), view);
  EXPECT_THAT(OfGeneration(view.job->status, 1), ElementsAre("Admitted"));
  view.soft_state.checked_template.check =
      TemplateCheck{.generation = 2, .message = "no such class", .again_at = At(100)};
  Apply(ReconcileJob(view, std::nullopt, kOptions, At(4)), view);
  EXPECT_THAT(OfGeneration(view.job->status, 1), IsEmpty());
}

TEST(JobLifecycle, FiguresWaitForTheirTurnAndSizesDoNot) {
  JobView view = TrainingView(3);
  Apply(ReconcileJob(view, Keep(view), kOptions, At(5)), view);
  Edit(view.coordinator.progress).step = 11;
  Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(6));
  EXPECT_FALSE(outcome.write_status);
  ASSERT_TRUE(outcome.look_again);
  EXPECT_GE(*outcome.look_again, At(35));
  EXPECT_LT(*outcome.look_again, At(45));
  EXPECT_TRUE(ReconcileJob(view, Keep(view), kOptions, *outcome.look_again).write_status);

  Edit(view.coordinator.progress).members.pop_back();
  Edit(view.coordinator.progress).state = CoordinatorState::kRecovering;
  outcome = ReconcileJob(view, Keep(view), kOptions, At(7));
  EXPECT_TRUE(outcome.write_status);
  EXPECT_EQ(outcome.status.learners, 2);
  EXPECT_EQ(outcome.status.progress.step, 11);
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kRecovering);
}

TEST(JobLifecycle, AShrinkIsSentToTheCoordinatorNotToThePods) {
  JobView view = TrainingView(4);
  Apply(ReconcileJob(view, Keep(view), kOptions, At(5)), view);
  JobPlan plan = Keep(view);
  plan.decision.keep.resize(2);
  plan.decision.drop = {Name(2), Name(3)};
  plan.decision.to = plan.decision.entitlement = 2;
  plan.decision.reason = {planner::ReasonCode::kFairShare, "2 of 4 GPUs"};
  const Outcome outcome = ReconcileJob(view, plan, kOptions, At(50));
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kResizing);
  EXPECT_EQ(outcome.status.share.resize_time, At(50));
  EXPECT_THAT(EventReasons(view, outcome), Contains("Resizing"));
}

TEST(JobLifecycle, AFailedCheckpointIsReportedOnceAndCleared) {
  JobView view = TrainingView(2);
  Apply(ReconcileJob(view, Keep(view), kOptions, At(5)), view);
  EXPECT_EQ(api::FindCondition(view.job->status, kConditionCheckpointsWritten), nullptr)
      << "none was due yet";
  auto& reported = Edit(view.coordinator.progress).last_checkpoint;
  struct Moment {
    const char* error;  // error of the last attempt
    const char* reason;
    bool want_true;
    const char* want_message;
    std::vector<std::string> want_events;
  };
  const char* const kFull = "write /checkpoints/step-2: No space left on device";
  const Moment kStory[] = {
      {"", "", true, "the last checkpoint was written", {}},
      {kFull, "VolumeFull", false, kFull, {"VolumeFull"}},
      {"write /checkpoints/step-3: No space left on device", "VolumeFull", false, kFull, {}},
      {"open /checkpoints/step-4: Read-only file system",
       "VolumeReadOnly",
       false,
       "open /checkpoints/step-4: Read-only file system",
       {"VolumeReadOnly"}},
      {"", "", true, "the last checkpoint was written", {"CheckpointsWritten"}},
      {"", "", true, "the last checkpoint was written", {}},
  };
  double now = 6;
  for (const Moment& moment : kStory) {
    SCOPED_TRACE(now);
    reported = ReportedCheckpoint{.error = moment.error, .reason = moment.reason};
    const Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(now++));
    const auto* condition = api::FindCondition(outcome.status, kConditionCheckpointsWritten);
    ASSERT_NE(condition, nullptr);
    EXPECT_EQ(IsTrue(outcome.status, kConditionCheckpointsWritten), moment.want_true);
    EXPECT_EQ(condition->message, moment.want_message);
    EXPECT_EQ(EventReasons(view, outcome), moment.want_events);
    EXPECT_TRUE(IsTrue(outcome.status, kConditionProgressing)) << "it trains nevertheless";
    if (moment.want_events.empty() && now > 7.5) {
      EXPECT_EQ(outcome.status.conditions, view.job->status.conditions);
    }
    Apply(outcome, view);
  }

  reported = ReportedCheckpoint{.error = kFull, .reason = "VolumeFull"};
  Apply(ReconcileJob(view, Keep(view), kOptions, At(now++)), view);
  reported.reset();  // another learner became rank 0, and has not tried yet
  Apply(ReconcileJob(view, Keep(view), kOptions, At(now++)), view);
  EXPECT_FALSE(IsTrue(view.job->status, kConditionCheckpointsWritten));
  view.learners[1] =
      Ended(view.learners[1], 0, R"({"reason":"Completed","step":1200,"parametersSha256":"abc"})");
  Apply(ReconcileJob(view, Keep(view), kOptions, At(now++)), view);
  EXPECT_TRUE(IsTrue(view.job->status, kConditionCheckpointsWritten)) << "the model was published";
}

TEST(JobLifecycle, OneCompletedLearnerIsEnough) {
  JobView view = TrainingView(2);
  view.learners[1] =
      Ended(view.learners[1], 0, R"({"reason":"Completed","step":1200,"parametersSha256":"abc"})");
  Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(9));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kSucceeded);
  EXPECT_EQ(outcome.status.progress.parameters_sha256, "abc");
  EXPECT_EQ(outcome.status.completion_time, At(9));
  EXPECT_EQ(outcome.status.progress.step, 1200);
  EXPECT_TRUE(IsTrue(outcome.status, kConditionComplete));
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_THAT(EventReasons(view, outcome), ElementsAre("Completed"));
  Apply(outcome, view);
  EXPECT_FALSE(IsPlanned(view));

  // Whatever the last plan said, no pod is created again.
  JobPlan plan;
  plan.decision.create = {{"gpu-1"}};
  outcome = ReconcileJob(view, plan, kOptions, At(10));
  EXPECT_THAT(outcome.actions, IsEmpty()) << "learner 0 may still write its termination message";
  ASSERT_TRUE(outcome.look_again);
  EXPECT_LE(*outcome.look_again, At(69))
      << "then its pod is deleted; a status write may be due earlier";
  view.learners[0] = Ended(view.learners[0], 0, R"({"reason":"Completed"})");
  outcome = ReconcileJob(view, plan, kOptions, At(11));
  EXPECT_THAT(outcome.actions, IsEmpty())
      << "the coordinator still has to receive the last statistics";
  Edit(view.coordinator.progress).state = CoordinatorState::kCompleted;
  Edit(view.coordinator.progress).accuracy = 0.98;
  outcome = ReconcileJob(view, plan, kOptions, At(12));
  EXPECT_EQ(outcome.status.progress.accuracy, 0.98);
  EXPECT_EQ(outcome.status.progress.step, 1200);
  EXPECT_THAT(outcome.actions, ElementsAre(VariantWith<DeletePod>(
                                   testing::Field(&DeletePod::pod, "digits-1a2b3-coordinator-1"))));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kSucceeded);

  view.coordinators.clear();
  outcome = ReconcileJob(view, plan, kOptions, At(13));
  EXPECT_THAT(outcome.actions, ElementsAre(Action(DeleteService{"service-uid"})));
  Edit(view.service).meta.deleted = At(13);
  EXPECT_THAT(ReconcileJob(view, plan, kOptions, At(14)).actions, IsEmpty());
}

// Someone created a pod that looks like a learner of the job.
TEST(JobLifecycle, ACompletionOfWhomTheCoordinatorNeverNamedIsNone) {
  JobView view = TrainingView(2);
  view.learners.push_back(Ended(Learner(7, Life::kRunning), 0,
                                R"({"reason":"Completed","parametersSha256":"0000deadbeef"})"));
  const Outcome outcome = ReconcileJob(view, Keep(TrainingView(2)), kOptions, At(9));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kRunning);
  EXPECT_EQ(outcome.status.progress.parameters_sha256, "");
}

TEST(JobLifecycle, APermanentExitCodeFailsTheJob) {
  JobView view = TrainingView(2);
  view.learners[1] = Ended(view.learners[1], 2, R"({"reason":"Failed","message":"model.yaml:3"})");
  Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(9));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kFailed);
  EXPECT_THAT(outcome.status.reason, testing::HasSubstr("model.yaml:3"));
  EXPECT_THAT(EventReasons(view, outcome), ElementsAre("PermanentExitCode"));
  Apply(outcome, view);
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(10));
  EXPECT_THAT(outcome.actions,
              ElementsAre(VariantWith<DeletePod>(testing::Field(&DeletePod::pod, Name(0)))));
}

// A wrong argument makes all learners fail at once, some of them after the job has failed.
TEST(JobLifecycle, ThreeOfManyLearnersThatFailAtOnceAreKept) {
  JobView view = TrainingView(64);
  for (int number = 0; number < 32; ++number) {
    view.learners[number] = Ended(view.learners[number], 2, "usage: train");
  }
  Apply(ReconcileJob(view, Keep(view), kOptions, At(9)), view);
  EXPECT_EQ(view.job->status.phase, api::JobPhase::kFailed);
  for (int number = 32; number < 64; ++number) {
    view.learners[number] = Ended(view.learners[number], 2, "usage: train");
  }
  const Outcome outcome = ReconcileJob(view, std::nullopt, kOptions, At(10));
  std::set<std::string> kept;
  for (int number = 0; number < 64; ++number) kept.insert(Name(number));
  for (const Action& action : outcome.actions) {
    if (const auto* end = std::get_if<DeletePod>(&action)) kept.erase(end->pod);
  }
  EXPECT_THAT(kept, UnorderedElementsAre(Name(61), Name(62), Name(63)));
}

TEST(JobLifecycle, AfterAWithdrawalTheNextGrantHasItsOwnTime) {
  JobView view = TrainingView(2);
  view.soft_state.refusals.grants = RefusedGrants{.since = At(5), .gates = {}};
  JobPlan plan = Keep(view);
  Apply(ReconcileJob(view, plan, kOptions, At(50)), view);
  EXPECT_TRUE(view.soft_state.refusals.grants);
  plan.decision.cap = planner::DemandCap{.learners = 2, .until = At(185)};
  Apply(ReconcileJob(view, plan, kOptions, At(125)), view);
  EXPECT_FALSE(view.soft_state.refusals.grants);
  // It gets another grant, which is refused too: the earlier cap does not apply to that one.
  view.soft_state.refusals.grants = RefusedGrants{.since = At(190), .gates = {}};
  Apply(ReconcileJob(view, plan, kOptions, At(195)), view);
  EXPECT_TRUE(view.soft_state.refusals.grants);
}

TEST(JobLifecycle, AFailureIsCountedAndTold) {
  JobView view = TrainingView(2);
  view.learners[1] = Ended(view.learners[1], 1, "segfault");
  Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(9));
  EXPECT_EQ(outcome.status.restarts, 1);
  EXPECT_EQ(outcome.status.failures.count, 1);
  EXPECT_THAT(EventReasons(view, outcome), Contains("LearnerFailed"));
  Apply(outcome, view);
  outcome = ReconcileJob(view, Keep(view), kOptions, At(10));
  EXPECT_EQ(outcome.status.restarts, 1) << "each pod counts once";
  EXPECT_THAT(EventReasons(view, outcome), IsEmpty());
  Apply(outcome, view);
  Edit(view.coordinator.progress).step = 99;
  outcome = ReconcileJob(view, Keep(view), kOptions, At(11));
  EXPECT_EQ(outcome.status.failures.count, 0);
  EXPECT_TRUE(IsTrue(outcome.status, kConditionProgressing));
}

TEST(JobLifecycle, AFailureThatTheCoordinatorTakesBackIsCleared) {
  JobView view = TrainingView(2);
  view.learners[1] = Ended(view.learners[1], 1, "no data");
  Edit(view.coordinator.progress).problem_reason = "LearnerFailed";
  Edit(view.coordinator.progress).problem_message = Name(1) + ": no data";
  Apply(ReconcileJob(view, Keep(view), kOptions, At(9)), view);
  EXPECT_EQ(api::FindCondition(view.job->status, kConditionProgressing)->reason, "LearnerFailed");
  Edit(view.coordinator.progress).step = 99;
  Apply(ReconcileJob(view, Keep(view), kOptions, At(11)), view);
  EXPECT_FALSE(IsTrue(view.job->status, kConditionProgressing)) << "it may recover";
  Edit(view.coordinator.progress).problem_reason.clear();
  Edit(view.coordinator.progress).problem_message.clear();
  const Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(70));
  EXPECT_TRUE(outcome.write_status);
  EXPECT_TRUE(IsTrue(outcome.status, kConditionProgressing));
}

TEST(JobLifecycle, ASuspendedJobDrainsThenReleasesItsCoordinator) {
  JobView view = TrainingView(2);
  Edit(view.job).spec.suspend = true;
  Edit(view.job).meta.generation = 2;
  EXPECT_TRUE(IsPlanned(view));
  JobPlan plan;
  plan.decision = {.drop = {Name(0), Name(1)}};
  Outcome outcome = ReconcileJob(view, plan, kOptions, At(20));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kSuspending);
  EXPECT_EQ(outcome.status.share.desired_learners, 0);
  EXPECT_FALSE(IsTrue(outcome.status, kConditionAdmitted));
  Apply(outcome, view);

  view.learners = {Learner(0, Life::kSucceeded), Learner(1, Life::kSucceeded)};
  EXPECT_FALSE(IsPlanned(view));
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(25));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kSuspended);
  EXPECT_EQ(outcome.status.learners, 0);
  EXPECT_EQ(outcome.actions.size(), 3u) << "two drained pods and the coordinator";
  EXPECT_THAT(EventReasons(view, outcome), Contains("Suspended"));
  Apply(outcome, view);

  // Then it is resumed.
  Edit(view.job).spec.suspend = false;
  Edit(view.job).meta.generation = 3;
  view.learners.clear();
  view.coordinators.clear();
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(30));
  EXPECT_THAT(outcome.actions, ElementsAre(Action(CheckTemplate{})));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kQueued);
}

TEST(JobLifecycle, ALostCoordinatorIsReplacedAndNobodyLeavesMeanwhile) {
  JobView view = TrainingView(2);
  Apply(ReconcileJob(view, Keep(view), kOptions, At(5)), view);
  view.coordinators.clear();
  view.coordinator = {};
  JobPlan plan = Keep(view);
  plan.decision.keep = {Name(0)};
  plan.decision.drop = {Name(1)};
  plan.decision.to = 1;
  const Outcome outcome = ReconcileJob(view, plan, kOptions, At(20));
  EXPECT_THAT(outcome.actions, Contains(Action(CreateCoordinator{2})));
  EXPECT_EQ(outcome.status.learners, 2) << "they continue to train";
  EXPECT_THAT(EventReasons(view, outcome), Contains("CoordinatorReplaced"));
}

TEST(JobLifecycle, TheEventsOfAPodThatDoesNotMountAreAskedNowAndThen) {
  JobView view = TrainingView(1);
  view.learners[0].conditions = {{.type = "PodReadyToStartContainers"}};
  view.soft_state.clocks.starting_since[Name(0)] = At(0);
  const FindMountCause ask{.pod = Name(0), .uid = "uid-0"};
  const auto asks = [&](double seconds) {
    return std::ranges::contains(ReconcileJob(view, Keep(view), kOptions, At(seconds)).actions,
                                 Action(ask));
  };
  EXPECT_FALSE(asks(10));
  EXPECT_TRUE(asks(20));
  view.soft_state.mount_causes[Name(0)] = {.text = "not found", .asked = At(20)};
  EXPECT_FALSE(asks(49));
  EXPECT_TRUE(asks(50));
}

TEST(JobLifecycle, ADeadlineFailsAJobThatIsActiveForTooLong) {
  JobView view = TrainingView(1);
  Edit(view.job).status.share.start_time = At(100);
  Edit(view.job).spec.active_deadline = std::chrono::seconds(60);
  Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(159));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kRunning);
  EXPECT_LE(outcome.look_again, At(160));
  Edit(view.job).spec.suspend = true;
  outcome = ReconcileJob(view, Keep(view), kOptions, At(160));
  EXPECT_NE(outcome.status.phase, api::JobPhase::kFailed) << "a suspended job is not active";
  Edit(view.job).spec.suspend = false;
  outcome = ReconcileJob(view, Keep(view), {.clock_agrees = false}, At(160));
  EXPECT_NE(outcome.status.phase, api::JobPhase::kFailed) << "its time is up only by a wrong clock";
  EXPECT_LE(outcome.look_again, At(190));
  outcome = ReconcileJob(view, Keep(view), kOptions, At(160));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kFailed);
  EXPECT_EQ(api::FindCondition(outcome.status, kConditionFailed)->reason, "DeadlineExceeded");
}

TEST(JobLifecycle, AFinishedJobIsDeletedWhenItsTimeIsUp) {
  JobView view = TrainingView(0);
  Edit(view.job).status.phase = api::JobPhase::kSucceeded;
  Edit(view.job).status.completion_time = At(100);
  const auto deletes = [&](double seconds, const LifecycleOptions& options = kOptions) {
    return std::ranges::contains(ReconcileJob(view, std::nullopt, options, At(seconds)).actions,
                                 Action(DeleteJob{}));
  };
  EXPECT_FALSE(deletes(1e6)) << "without a TTL it stays";
  Edit(view.job).spec.ttl_after_finished = std::chrono::seconds(60);
  EXPECT_FALSE(deletes(159));
  EXPECT_EQ(ReconcileJob(view, std::nullopt, kOptions, At(159)).look_again, At(160));
  EXPECT_TRUE(deletes(160));
  EXPECT_FALSE(deletes(160, {.clock_agrees = false}));
}

// The gate of a deleted pod cannot be opened, and that error would end the batch.
TEST(JobLifecycle, APodIsLookedForBeforeAnythingIsDoneWithIt) {
  JobView view = TrainingView(1);
  view.learners[0] = Learner(0, Life::kGated);
  view.overdue_pods = {view.learners[0].meta.name};
  JobPlan plan = Keep(view);
  plan.open = view.overdue_pods;
  const Outcome outcome = ReconcileJob(view, plan, kOptions, At(10));
  EXPECT_THAT(outcome.actions, ElementsAre(Action(LookForPod{view.overdue_pods[0], ""}),
                                           VariantWith<OpenGate>(testing::_)));
}

// A finalizer may keep it for any time.
TEST(JobLifecycle, ADeletedJobDrainsAndSaysSo) {
  JobView view = TrainingView(2);
  Edit(view.job).meta.deleted = At(1);
  EXPECT_TRUE(IsPlanned(view));
  JobPlan plan;
  plan.decision = {.drop = {Name(0), Name(1)}, .reason = {.sentence = "suspended"}};
  Outcome outcome = ReconcileJob(view, plan, kOptions, At(20));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kTerminating);
  EXPECT_EQ(outcome.status.reason, "being deleted: its learners leave");
  EXPECT_EQ(outcome.status.share.desired_learners, 0);
  EXPECT_EQ(api::FindCondition(outcome.status, kConditionAdmitted)->reason, "Deleted");
  EXPECT_THAT(EventReasons(view, outcome), UnorderedElementsAre("Terminating", "Resizing"));
  Apply(outcome, view);

  view.learners = {Learner(0, Life::kSucceeded), Learner(1, Life::kSucceeded)};
  EXPECT_FALSE(IsPlanned(view));
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(25));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kTerminating);
  EXPECT_EQ(outcome.status.reason,
            "being deleted: nothing of it runs, a finalizer keeps the object");
  EXPECT_EQ(outcome.actions.size(), 3u) << "two drained pods and the coordinator";
  Apply(outcome, view);
  view.learners.clear();
  view.coordinators.clear();
  outcome = ReconcileJob(view, std::nullopt, kOptions, At(30));
  EXPECT_THAT(outcome.actions, ElementsAre(Action(DeleteService{"service-uid"})))
      << "its keys and policies go with it";
}

// The garbage collector may have removed it.
TEST(JobLifecycle, ADeletedJobGetsNoOtherCoordinator) {
  JobView view = TrainingView(2);
  view.coordinators.clear();
  Edit(view.job).meta.deleted = At(1);
  const Outcome outcome = ReconcileJob(view, Keep(view), kOptions, At(2));
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_EQ(outcome.status.objects.coordinator_term, 1);
}

TEST(JobLifecycle, ADeletedJobThatIsNotUnderstoodEndsToo) {
  JobView view = TrainingView(2);
  view.unreadable = Edit(view.job).unreadable = "spec.priority: not a whole number";
  Edit(view.job).meta.deleted = At(1);
  EXPECT_FALSE(IsPlanned(view));
  const Outcome outcome = ReconcileJob(view, std::nullopt, kOptions, At(2));
  EXPECT_THAT(outcome.actions,
              ElementsAre(VariantWith<DeletePod>(testing::_), VariantWith<DeletePod>(testing::_)));
  EXPECT_EQ(outcome.status.phase, api::JobPhase::kTerminating);
}

TEST(JobLifecycle, ADeletedJobThatHasEndedIsCleanedUp) {
  JobView view = TrainingView(1);
  Edit(view.job).status.phase = api::JobPhase::kFailed;
  Edit(view.job).meta.deleted = At(1);
  Edit(view.job).spec.ttl_after_finished = std::chrono::seconds(0);
  const Outcome outcome = ReconcileJob(view, std::nullopt, kOptions, At(2));
  EXPECT_THAT(outcome.actions, ElementsAre(VariantWith<DeletePod>(testing::_)))
      << "the job itself is deleted already";
}

// A newer version may have written it.
TEST(JobLifecycle, AJobWhoseStatusIsNotUnderstoodIsLeftAloneVisibly) {
  for (const bool finished : {false, true}) {
    JobView view = TrainingView(2);
    api::ElasticTrainingJob& job = Edit(view.job);
    job.unreadable_status = "status.phase: \"Hibernating\" is not known";
    job.spec.ttl_after_finished = std::chrono::seconds(0);
    if (finished) {
      job.status.phase = api::JobPhase::kSucceeded;
      job.status.completion_time = At(0);
    }
    EXPECT_FALSE(IsPlanned(view));
    Outcome outcome = ReconcileJob(view, std::nullopt, kOptions, At(1000));
    EXPECT_THAT(outcome.actions, IsEmpty());
    EXPECT_EQ(outcome.status.phase, view.job->status.phase);
    const api::Condition* readable = api::FindCondition(outcome.status, kConditionReadable);
    ASSERT_NE(readable, nullptr);
    EXPECT_EQ(readable->reason, "StatusNotUnderstood");
    EXPECT_THAT(EventReasons(view, outcome), ElementsAre("StatusNotUnderstood"));
    EXPECT_TRUE(outcome.write_status);
    Apply(outcome, view);
    EXPECT_FALSE(ReconcileJob(view, std::nullopt, kOptions, At(2000)).write_status) << "told once";
  }
}

}  // namespace
}  // namespace pliant::controller
