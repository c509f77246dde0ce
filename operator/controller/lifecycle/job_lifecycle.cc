#include "operator/controller/lifecycle/job_lifecycle.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/earliest.h"
#include "base/format.h"
#include "operator/controller/lifecycle/admission.h"
#include "operator/controller/lifecycle/conditions.h"
#include "operator/controller/lifecycle/coordinator_policy.h"
#include "operator/controller/lifecycle/failure_policy.h"
#include "operator/controller/lifecycle/job_status.h"
#include "operator/controller/lifecycle/limits.h"
#include "operator/controller/lifecycle/problems.h"
#include "operator/controller/model/learner_ending.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

void Append(std::vector<Action>&& from, std::vector<Action>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Adds the actions, but while the job backs off none that serves learners.
void Serve(std::vector<Action>&& actions, const LifecycleOptions& options, Outcome& outcome) {
  if (!options.serves) {
    const auto held_back = std::erase_if(actions, ServesLearners);
    outcome.held_back = outcome.held_back || held_back > 0;
  }
  Append(std::move(actions), outcome.actions);
}

// The coordinator needs a moment to receive the learners' last messages.
constexpr std::chrono::seconds kLastStats{10};

struct Completion {
  std::string parameters_sha256;
  std::optional<std::int64_t> step;
};

// Whether the training is complete, as a learner or the coordinator reports. A learner that the
// coordinator has never named does not count: it is unknown what it trained. (If neither is left,
// new learners find the last checkpoint, and complete.)
std::optional<Completion> FindCompletion(const JobView& view) {
  for (const api::Pod& pod : view.learners) {
    if (!view.soft_state.contacts.named.contains(pod.meta.uid)) continue;
    const auto ending = EndingOf(pod);
    if (ending && ending->end == LearnerEnd::kCompleted) {
      return Completion{ending->parameters_sha256, ending->step};
    }
  }
  const auto& progress = view.coordinator.progress;
  if (progress && progress->state == CoordinatorState::kCompleted &&
      !progress->parameters_sha256.empty()) {
    return Completion{progress->parameters_sha256, progress->step};
  }
  return std::nullopt;
}

void FinishStatus(const JobView& view, api::JobPhase phase, WallTime now, Outcome& outcome) {
  outcome.status.phase = phase;
  outcome.status.share.desired_learners = 0;
  outcome.status.share.entitlement = 0;
  outcome.status.progress.samples_per_second.reset();
  outcome.status.share.jobs_before.reset();
  outcome.status.share.limited_by.clear();
  outcome.status.waiting.since.reset();
  outcome.status.waiting.estimated = {};
  outcome.status.completion_time = std::chrono::floor<std::chrono::seconds>(now);
  for (const std::string_view type :
       {kConditionHasPlace, kConditionRunning, kConditionProgressing}) {
    SetCondition(outcome.status, type,
                 {api::ConditionStatus::kFalse, std::string(ToString(phase)), ""},
                 view.job->meta.generation, now);
  }
}

void Succeed(const JobView& view, const Completion& completion, WallTime now, Outcome& outcome) {
  FinishStatus(view, api::JobPhase::kSucceeded, now, outcome);
  outcome.status.progress.parameters_sha256 = completion.parameters_sha256;
  if (completion.step > outcome.status.progress.step)
    outcome.status.progress.step = completion.step;
  outcome.status.reason = "the training is complete";
  SetCondition(outcome.status, kConditionComplete,
               {api::ConditionStatus::kTrue, "Completed", "the training is complete"},
               view.job->meta.generation, now);
  // The training is complete only when its model is on the volume.
  SetCondition(outcome.status, kConditionCheckpointsWritten,
               {api::ConditionStatus::kTrue, "Written", "the final model is published"},
               view.job->meta.generation, now);
}

void FailPermanently(const JobView& view, const FatalFailure& failure, WallTime now,
                     Outcome& outcome) {
  FinishStatus(view, api::JobPhase::kFailed, now, outcome);
  SetReason(outcome.status, failure.message);
  SetCondition(outcome.status, kConditionFailed,
               {api::ConditionStatus::kTrue, failure.reason, failure.message},
               view.job->meta.generation, now);
}

// Whether the coordinator of a completed job may still report stats of the last steps.
bool HasLastStats(const JobView& view, WallTime now) {
  const CoordinatorView& coordinator = view.coordinator;
  return view.job->status.phase == api::JobPhase::kSucceeded && coordinator.reachable &&
         coordinator.progress->state != CoordinatorState::kCompleted &&
         now < TimeOf(view, view.job->status.completion_time).value_or(now) + kLastStats;
}

void CollectPods(const JobView& view, Outcome& outcome) {
  for (const api::Pod* pod : PodsToCollect(view.learners, outcome.status)) {
    outcome.actions.emplace_back(
        DeletePod{.pod = pod->meta.name, .uid = pod->meta.uid, .why = "it has ended"});
  }
}

// The address, the keys and the policies of a coordinator that nobody needs any longer.
void RemoveService(const JobView& view, Outcome& outcome) {
  if (view.coordinators.empty() && view.service && !view.service->meta.deleted) {
    outcome.actions.emplace_back(DeleteService{view.service->meta.uid});
  }
}

// A job that is being deleted gets no other coordinator: the garbage collector may be removing what
// it owns.
void EndCoordinator(const JobView& view, WallTime now, Outcome& outcome) {
  if (HasLiveLearners(view)) return;
  Append(DecideCoordinator(view, /*needed=*/false, now).actions, outcome.actions);
  RemoveService(view, outcome);
}

// Removes what is left of a finished job, except ended pods whose logs somebody may want.
void CleanUp(const JobView& view, WallTime now, Outcome& outcome) {
  const bool completed = view.job->status.phase == api::JobPhase::kSucceeded;
  ReportProgress(view, outcome.status);
  outcome.status.progress.samples_per_second.reset();
  outcome.status.progress.step =
      std::max(outcome.status.progress.step, view.job->status.progress.step);
  Termination learners = TerminateLearners(view, completed, now);
  Append(std::move(learners.actions), outcome.actions);
  KeepEarliest(learners.look_again, outcome.look_again);
  CollectPods(view, outcome);
  if (HasLiveLearners(view)) return;  // they need the coordinator to the end
  if (HasLastStats(view, now)) {
    outcome.look_again = now + std::chrono::seconds(1);
  } else {
    EndCoordinator(view, now, outcome);
  }
}

// Irreversible actions wait until the clock is known to be right.
constexpr std::chrono::seconds kAskClockAgain{30};

// The garbage collector then removes what the job owns.
void DeleteInTime(const JobView& view, const LifecycleOptions& options, WallTime now,
                  Outcome& outcome) {
  const std::optional<WallTime> finished = TimeOf(view, outcome.status.completion_time);
  if (!view.job->spec.ttl_after_finished || !finished) return;
  const WallTime due = *finished + *view.job->spec.ttl_after_finished;
  if (now < due) {
    KeepEarliest(due, outcome.look_again);
  } else if (!options.clock_agrees) {
    KeepEarliest(now + kAskClockAgain, outcome.look_again);
  } else {
    outcome.actions.emplace_back(DeleteJob{});
  }
}

// The time counts as in a Kubernetes Job: from when it last left the queue, so that waiting and
// suspension do not count.
std::optional<FatalFailure> JudgeDeadline(const JobView& view, const LifecycleOptions& options,
                                          WallTime now, Outcome& outcome) {
  const auto& deadline = view.job->spec.active_deadline;
  const std::optional<WallTime> started = TimeOf(view, view.job->status.share.start_time);
  if (!deadline || !started || IsSuspended(view)) return std::nullopt;
  if (now < *started + *deadline) {
    KeepEarliest(*started + *deadline, outcome.look_again);
    return std::nullopt;
  }
  if (!options.clock_agrees) {
    KeepEarliest(now + kAskClockAgain, outcome.look_again);
    return std::nullopt;
  }
  return FatalFailure{"DeadlineExceeded",
                      Format("it was active for longer than spec.activeDeadlineSeconds, {} s; "
                             "its checkpoints are kept",
                             deadline->count())};
}

void Admit(const JobView& view, const std::optional<JobPlan>& plan, const LifecycleOptions& options,
           WallTime now, Outcome& outcome) {
  if (IsSuspended(view)) {
    // Its template may be changed now: it is checked again when the job is resumed.
    outcome.soft_state.checked_template.check.reset();
    SetCondition(outcome.status, kConditionAdmitted,
                 view.job->meta.deleted
                     ? Verdict{api::ConditionStatus::kFalse, "Deleted", "the job is being deleted"}
                     : Verdict{api::ConditionStatus::kFalse, "Suspended", "spec.suspend is true"},
                 view.job->meta.generation, now);
    return;
  }
  const std::string& present = view.job->spec.learner_template.hash;
  if (IsAdmitted(view.job->spec, view.job->status)) {
    outcome.status.objects.admitted_template = present;
    // The operator that admitted the job knew what its learners need, and live learners show it; a
    // waiting job has none, so its template is checked again. It stays admitted whatever the
    // result.
    const bool waits = !HasLiveLearners(view) && (!plan || plan->decision.to == 0);
    if (waits && NeedsAreGuessed(view) && CurrentTemplateCheck(view) == nullptr) {
      Serve({CheckTemplate{}}, options, outcome);
    }
    return;
  }
  AdmissionOutcome admission = DecideAdmission(view, now);
  Serve(std::move(admission.actions), options, outcome);
  KeepEarliest(admission.look_again, outcome.look_again);
  if (!admission.verdict) return;
  // For an admitted job the plan's reason says more.
  if (!plan || !admission.training) {
    SetReason(outcome.status, admission.verdict->message);
  }
  SetCondition(outcome.status, kConditionAdmitted, *std::move(admission.verdict),
               view.job->meta.generation, now);
  if (!admission.training) return;
  // Learners of another template did not start: that says nothing about this one.
  outcome.soft_state.refusals = {};
  outcome.status.training = admission.training;
  outcome.status.objects.admitted_template = present;
  outcome.status.selector = LearnerSelector(view.job->meta);
  if (outcome.status.objects.coordinator_image.empty())
    outcome.status.objects.coordinator_image = options.coordinator_image;
}

void ProvideCoordinator(const JobView& view, int target, const LifecycleOptions& options,
                        WallTime now, Outcome& outcome) {
  if (view.job->meta.deleted) {
    EndCoordinator(view, now, outcome);
    return;
  }
  const bool needed = target > 0 || HasLiveLearners(view);
  CoordinatorOutcome coordinator = DecideCoordinator(view, needed, now);
  KeepEarliest(coordinator.look_again, outcome.look_again);
  if (needed && !options.serves && CurrentCoordinator(view) == nullptr) outcome.held_back = true;
  // A term is of a coordinator that was at least asked for.
  const bool is_new = coordinator.term != outcome.status.objects.coordinator_term;
  if (is_new && !options.serves) return;
  outcome.status.objects.coordinator_term = coordinator.term;
  outcome.soft_state.coordinator_retry = coordinator.retry;
  Serve(std::move(coordinator.actions), options, outcome);
}

void ProvideLearners(const JobView& view, const JobPlan& plan, const LifecycleOptions& options,
                     Outcome& outcome) {
  Grants grants = DecideGrants(view, plan);
  if (options.serves) outcome.status.objects.next_learner = grants.next_learner;
  Serve(std::move(grants.actions), options, outcome);
}

// These actions come first: all others would fail as long as they are decided on pods that no
// longer exist.
void SearchPods(const JobView& view, WallTime now, Outcome& outcome) {
  const PodSearch search = LookForPods(view, now);
  outcome.soft_state.contacts.searched_at = search.searched_at;
  outcome.actions.insert(outcome.actions.end(), search.actions.begin(), search.actions.end());
  KeepEarliest(search.look_again, outcome.look_again);
}

// The obstacle to a mount may be removed at any time.
constexpr std::chrono::seconds kAskMountAgain{30};

void AskWhyNotMounted(const JobView& view, WallTime now, Outcome& outcome) {
  const api::Pod* pod = FindUnmounted(view, now);
  if (pod == nullptr) return;
  const auto known = view.soft_state.mount_causes.find(pod->meta.name);
  if (known != view.soft_state.mount_causes.end() && now < known->second.asked + kAskMountAgain) {
    KeepEarliest(known->second.asked + kAskMountAgain, outcome.look_again);
    return;
  }
  outcome.actions.emplace_back(FindMountCause{.pod = pod->meta.name, .uid = pod->meta.uid});
}

// The API server accepts what its CRD allows, which may be of another version than ours.
void ReportReadable(const JobView& view, WallTime now, api::JobStatus& status) {
  const bool was_reported = api::FindCondition(status, kConditionReadable) != nullptr;
  if (view.unreadable.empty() && !was_reported) return;
  const std::int64_t generation = view.job->meta.generation;
  if (view.unreadable.empty()) {
    SetCondition(status, kConditionReadable,
                 {api::ConditionStatus::kTrue, "Understood", "the job is understood"}, generation,
                 now);
    return;
  }
  const bool continues = view.job->unreadable.empty();
  SetCondition(
      status, kConditionReadable,
      {api::ConditionStatus::kFalse, "NotUnderstood",
       view.unreadable + (continues
                              ? "; until this is corrected the job continues with its previous spec"
                              : "; nothing is done for the job until this is corrected")},
      generation, now);
  if (!continues) SetReason(status, view.unreadable);
}

// Says why nothing is done for the job. If even its conditions are not understood, nothing is said.
void LeaveAlone(const JobView& view, WallTime now, Outcome& outcome) {
  const std::string& why = view.job->unreadable_status;
  if (why.starts_with("status.conditions") || why.starts_with("status:")) return;
  const std::string remark =
      why +
      "; a newer version of the operator may have written it: nothing is done for the job "
      "until such a version runs, or the job is deleted; its learners continue to train";
  SetReason(outcome.status, remark);
  SetCondition(outcome.status, kConditionReadable,
               {api::ConditionStatus::kFalse, "StatusNotUnderstood", remark},
               view.job->meta.generation, now);
  outcome.write_status = outcome.status != view.job->status;
}

void EndQuarantine(const JobView& view, WallTime now, api::JobStatus& status) {
  if (api::FindCondition(status, kConditionQuarantined) == nullptr) return;
  SetCondition(status, kConditionQuarantined,
               {api::ConditionStatus::kFalse, "LookedAfter", "the operator handles the job again"},
               view.job->meta.generation, now);
}

// The plan's reason would say that the job is suspended.
void ReportDeletion(const JobView& view, api::JobStatus& status) {
  if (!view.job->meta.deleted) return;
  status.share.desired_learners = 0;
  status.share.entitlement = 0;
  SetReason(status, HasLiveLearners(view)
                        ? "being deleted: its learners leave"
                        : "being deleted: nothing of it runs, a finalizer keeps the object");
}

// A deleted job whose spec is not understood cannot be planned.
void EndUnreadable(const JobView& view, WallTime now, Outcome& outcome) {
  Append(TerminateLearners(view, /*completed=*/false, now).actions, outcome.actions);
  EndCoordinator(view, now, outcome);
  outcome.status.phase = api::JobPhase::kTerminating;
  ReportDeletion(view, outcome.status);
}

// Whether there is something to report: for a new job, once it is admitted or refused.
bool ShouldWriteStatus(const api::JobStatus& before, const api::JobStatus& after) {
  return before.phase != api::JobPhase::kNew || after.finished() ||
         api::FindCondition(after, kConditionAdmitted) != nullptr ||
         api::FindCondition(after, kConditionReadable) != nullptr;
}

// All conditions were decided on this generation, also unchanged ones: a user who waits for a
// condition after an edit waits for its observedGeneration. Only Admitted, of a job that was not
// admitted, is open until the template was checked.
void ObserveGeneration(const api::ElasticTrainingJob& job, api::JobStatus& status) {
  const bool settled = status.finished() || IsAdmitted(job.spec, status);
  for (api::Condition& condition : status.conditions) {
    if (settled || condition.type != kConditionAdmitted) {
      condition.observed_generation = job.meta.generation;
    }
  }
  status.observed_generation = job.meta.generation;
}

void FinishOutcome(const JobView& view, const std::optional<JobPlan>& plan, WallTime now,
                   Outcome& outcome) {
  const api::JobStatus& before = view.job->status;
  Reporting& reporting = outcome.soft_state.reporting;
  if (!ShouldWriteStatus(before, outcome.status)) return;
  ObserveGeneration(*view.job, outcome.status);
  // The previous leader may have written a moment ago.
  if (!reporting.last.at) reporting.last.at = now;
  // The last stats of a finished job are written without delay.
  const auto written = before.finished() ? std::nullopt : reporting.last.at;
  const WriteDecision write =
      DecideWrite({.before = before,
                   .after = outcome.status,
                   .same_reason = plan && reporting.last.reason == plan->decision.reason.code},
                  view.job->meta.uid, written, now);
  outcome.write_status = write.write;
  reporting.next_progress_write = write.due;
  if (write.write) {
    // A write does not wait if the owner has edited the job, if it has finished, or if there are
    // actions.
    const auto wait = WhenWriteIsLeft(now, reporting.budget);
    const bool can_wait = outcome.actions.empty() && !outcome.status.finished() &&
                          before.observed_generation == view.job->meta.generation;
    outcome.write_status = !wait || !can_wait;
    if (outcome.write_status) {
      reporting.budget.writes = std::max(0.0, reporting.budget.writes - 1);
    } else {
      reporting.next_progress_write = wait;
    }
  }
  if (outcome.write_status) reporting.last.at = now;
  if (plan && (outcome.write_status || outcome.status.reason == before.reason)) {
    reporting.last.reason = plan->decision.reason.code;
  }
  KeepEarliest(reporting.next_progress_write, outcome.look_again);
}

}  // namespace

Outcome ReportQuarantine(const JobView& view, WallTime now) {
  Outcome outcome{.status = view.job->status, .soft_state = view.soft_state};
  constexpr std::string_view kWhy =
      "the operator crashed twice while it handled this job, and leaves it alone to protect other "
      "jobs: its learners continue to train, nothing else is done; edit its spec to have it tried "
      "again, or install the next version of the operator";
  SetReason(outcome.status, kWhy);
  SetCondition(outcome.status, kConditionQuarantined,
               {api::ConditionStatus::kTrue, "OperatorDied", std::string(kWhy)},
               view.job->meta.generation, now);
  outcome.write_status = outcome.status != view.job->status;
  return outcome;
}

bool IsPlanned(const JobView& view) {
  if (!view.job->unreadable.empty() || !view.job->unreadable_status.empty()) return false;
  if (view.job->status.finished()) return false;
  return HasLiveLearners(view) || (TrainingOf(view) && !view.job->meta.deleted);
}

Outcome ReconcileJob(const JobView& view, const std::optional<JobPlan>& plan,
                     const LifecycleOptions& options, WallTime now) {
  Outcome outcome{.status = view.job->status, .soft_state = view.soft_state};
  if (!view.job->unreadable_status.empty()) {
    LeaveAlone(view, now, outcome);
    return outcome;
  }
  if (view.job->status.finished()) {
    SearchPods(view, now, outcome);
    CleanUp(view, now, outcome);
    if (!view.job->meta.deleted) DeleteInTime(view, options, now, outcome);
    FinishOutcome(view, std::nullopt, now, outcome);
    return outcome;
  }
  ReportReadable(view, now, outcome.status);
  EndQuarantine(view, now, outcome.status);
  if (!view.job->unreadable.empty()) {
    if (outcome.status.phase == api::JobPhase::kNew) outcome.status.phase = api::JobPhase::kQueued;
    if (view.job->meta.deleted) EndUnreadable(view, now, outcome);
    FinishOutcome(view, std::nullopt, now, outcome);
    return outcome;
  }

  ReportLimits(view, plan, now, outcome.status);
  ReportProgress(view, outcome.status);
  const FailureVerdict failures =
      JudgeFailures(view.job->spec.failure_policy, view.job->status.failures,
                    view.soft_state.lowest_step, CommittedStep(view), view.learners);
  outcome.status.failures = failures.failures;
  outcome.soft_state.lowest_step = failures.lowest_step;
  outcome.status.restarts += failures.newly_failed;
  if (const auto completion = FindCompletion(view)) {
    Succeed(view, *completion, now, outcome);
  } else if (const auto fatal =
                 failures.fatal ? failures.fatal : JudgeDeadline(view, options, now, outcome)) {
    FailPermanently(view, *fatal, now, outcome);
  } else {
    SearchPods(view, now, outcome);
    if (plan) ReportPlan(view, plan->decision, now, outcome.status);
    OnCap(plan ? plan->decision.cap : std::nullopt, outcome.soft_state.refusals);
    Admit(view, plan, options, now, outcome);
    ProvideCoordinator(view, plan ? plan->decision.to : 0, options, now, outcome);
    if (plan) ProvideLearners(view, *plan, options, outcome);
    CollectPods(view, outcome);
    AskWhyNotMounted(view, now, outcome);
    KeepEarliest(NextProblemCheck(view, now), outcome.look_again);
    outcome.status.phase = PhaseOf(view, plan, failures);
    ReportDeletion(view, outcome.status);
    ReportConditions(view, plan, failures, now, outcome.status);
    ReportCheckpoints(view, now, outcome.status);
  }
  FinishOutcome(view, plan, now, outcome);
  return outcome;
}

}  // namespace pliant::controller
