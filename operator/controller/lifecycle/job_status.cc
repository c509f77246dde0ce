#include "operator/controller/lifecycle/job_status.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include "operator/controller/lifecycle/conditions.h"
#include "operator/controller/lifecycle/problems.h"

namespace pliant::controller {
namespace {

using std::chrono::floor;
using std::chrono::seconds;

constexpr seconds kStatsEvery{30};
constexpr int kStatsJitterSeconds = 10;

// Whether the coordinator knows which learners train. A new coordinator finds out from the
// learners; until then running learners continue as they were.
bool KnowsMembers(const JobView& view) {
  if (!view.coordinator.progress) return false;
  if (!view.coordinator.progress->members.empty()) return true;
  return std::ranges::none_of(view.learners,
                              [](const api::Pod& pod) { return !pod.ended() && IsRunning(pod); });
}

// Ended members do not count: a membership that lost one is replaced a moment later.
int LiveMembers(const JobView& view, const Progress& progress) {
  const auto live = std::ranges::count_if(view.learners, [&](const api::Pod& pod) {
    return !pod.ended() && std::ranges::contains(progress.members, pod.meta.name);
  });
  return static_cast<int>(live);
}

// A finer time would promise more than is known.
std::optional<WallTime> InWholeMinutes(const std::optional<WallTime>& time) {
  if (!time) return std::nullopt;
  return std::chrono::ceil<std::chrono::minutes>(*time);
}

std::set<std::string> MembersOf(const Progress& progress) {
  return {progress.members.begin(), progress.members.end()};
}

// A learner that is still to be created has no name yet: the sizes differ then.
bool IsAsWanted(const Progress& progress, const planner::Decision& decision) {
  const std::set<std::string> wanted(decision.keep.begin(), decision.keep.end());
  return decision.create.empty() && MembersOf(progress) == wanted;
}

// Whether the API server refuses to make the job's pods, and it has none.
bool CannotStart(const JobView& view) {
  return view.soft_state.refusals.grants && !HasLiveLearners(view);
}

// While it is unknown which learners train, the phase stays what it was, as long as some may. A job
// starts once it gets learners; after that, only a failure leaves it without members, unless all of
// them were replaced.
api::JobPhase PhaseWithoutMembers(const JobView& view, const FailureVerdict& failures) {
  using enum api::JobPhase;
  const api::JobStatus& told = view.job->status;
  const bool trained =
      told.phase == kRunning || told.phase == kResizing || told.phase == kRecovering;
  if (!trained || told.share.desired_learners == 0) {
    return CannotStart(view) ? kQueued : kStarting;
  }
  if (HasLiveLearners(view) && !KnowsMembers(view)) return told.phase;
  return told.phase == kResizing && failures.newly_failed == 0 ? kResizing : kRecovering;
}

// Whether the end of other jobs would not help: a person has to do something.
bool NeedsUserAction(planner::ReasonCode code) {
  using enum planner::ReasonCode;
  return code == kNoNodeFits || code == kTooLarge || code == kGrantWithdrawn ||
         code == kQueueMissing || code == kQueueRefused || code == kPoolMissing;
}

// Whether the grant was withdrawn because of the problem in condition `told`: that says more than
// the withdrawal, until learners are tried again.
bool StillKept(const std::optional<JobPlan>& plan, const api::Condition* told) {
  return plan && plan->decision.to == 0 &&
         plan->decision.reason.code == planner::ReasonCode::kGrantWithdrawn && told != nullptr &&
         told->status == api::ConditionStatus::kFalse &&
         told->reason != ToString(api::JobPhase::kQueued);
}

// The numbers of the share that are no news: those of all jobs change when a job comes or goes.
void CopyShareNumbers(const api::JobStatus& from, api::JobStatus& to) {
  to.share.entitled_gpus = from.share.entitled_gpus;
  to.share.demand_learners = from.share.demand_learners;
  to.share.jobs_before = from.share.jobs_before;
  to.share.limited_by = from.share.limited_by;
}

// Copies the fields that do not count as news.
void CopyStats(const api::JobStatus& from, api::JobStatus& to) {
  CopyShareNumbers(from, to);
  to.progress.step = from.progress.step;
  to.progress.epoch = from.progress.epoch;
  to.progress.total_steps = from.progress.total_steps;
  to.progress.samples_per_second = from.progress.samples_per_second;
  to.progress.speeds = from.progress.speeds;
  to.progress.loss = from.progress.loss;
  to.progress.accuracy = from.progress.accuracy;
  to.progress.evaluations = from.progress.evaluations;
  to.progress.last_checkpoint = from.progress.last_checkpoint;
  // Becomes known with the first membership, which is news. A server whose CRD lacks it drops it.
  to.gpu_product = from.gpu_product;
  to.waiting.estimated = from.waiting.estimated;
  to.waiting.attained_gpu_seconds = from.waiting.attained_gpu_seconds;
  to.waiting.recent_service = from.waiting.recent_service;
}

// The condition of a waiting job has the same text.
void CopyReason(const api::JobStatus& from, api::JobStatus& to) {
  const auto progressing =
      std::ranges::find(to.conditions, kConditionProgressing, &api::Condition::type);
  if (progressing != to.conditions.end() && progressing->message == to.reason) {
    progressing->message = from.reason;
  }
  to.reason = from.reason;
}

// The sentence in status.reason says more.
Verdict PlaceOf(const JobView& view, const std::optional<JobPlan>& plan) {
  using enum api::ConditionStatus;
  if (view.job->meta.deleted) return {kFalse, "Deleted", "the job is being deleted"};
  if (view.job->spec.suspend) return {kFalse, "Suspended", "spec.suspend is true"};
  if (!plan) return {kFalse, "NotAdmitted", "the condition Admitted says why"};
  const std::string reason(ToString(plan->decision.reason.code));
  if (plan->decision.to == 0) return {kFalse, reason, "it has no GPUs: status.reason says why"};
  return {kTrue, reason, "it has GPUs: status.reason says how many, and why"};
}

void ReportStats(const Progress& progress, api::JobStatus& status) {
  if (progress.step) status.progress.step = progress.step;
  if (progress.epoch) status.progress.epoch = progress.epoch;
  if (progress.total_steps) status.progress.total_steps = progress.total_steps;
  if (progress.loss) status.progress.loss = progress.loss;
  if (progress.accuracy) status.progress.accuracy = progress.accuracy;
  status.progress.evaluations =
      api::Merged(status.progress.evaluations, progress.evaluations, progress.step);
  status.progress.samples_per_second = progress.samples_per_second;
  if (progress.last_checkpoint && progress.last_checkpoint->saved) {
    status.progress.last_checkpoint = progress.last_checkpoint->saved;
  }
}

void ReportMembership(const Progress& progress, api::JobStatus& status) {
  const MembershipId told = ParseMembershipId(status.progress.membership_id);
  status.resizes += std::ranges::count_if(progress.resizes, [&](const ReportedResize& resize) {
    return resize.membership > told && resize.from > 0 && resize.to > 0 && resize.from != resize.to;
  });
  if (ParseMembershipId(progress.membership_id) > told) {
    status.progress.membership_id = progress.membership_id;
  }
}

}  // namespace

void ReportProgress(const JobView& view, api::JobStatus& status) {
  const ServiceMeter& meter = view.soft_state.meter;
  status.waiting.attained_gpu_seconds = static_cast<std::int64_t>(meter.gpu_seconds);
  if (meter.until) {
    status.waiting.recent_service = {
        .gpu_seconds = static_cast<std::int64_t>(meter.recent_gpu_seconds),
        .time = floor<seconds>(*meter.until)};
  }
  if (view.coordinator.progress) {
    const Progress& progress = *view.coordinator.progress;
    ReportStats(progress, status);
    // A restarted coordinator has no number until a learner has reported it.
    if (progress.total_steps) status.progress.learners_asked = progress.learners_asked;
    ReportMembership(progress, status);
    if (KnowsMembers(view)) status.learners = LiveMembers(view, progress);
  }
  // Jobs with an equal template share speeds: one that has not trained has none of its own.
  if (status.progress.step && !view.soft_state.speed.measured.empty())
    status.progress.speeds = view.soft_state.speed.measured;
  if (!HasLiveLearners(view)) {
    status.learners = 0;
    status.progress.samples_per_second.reset();
  }
  status.gpus = std::int64_t{status.learners} * view.job->spec.elastic.gpus_per_learner;
}

void ReportPlan(const JobView& view, const planner::Decision& decision, WallTime now,
                api::JobStatus& status) {
  const int before = status.share.desired_learners;
  if (before == 0 && decision.to > 0) status.share.start_time = floor<seconds>(now);
  if (before > 0 && decision.to > 0 && before != decision.to) {
    status.share.resize_time = floor<seconds>(now);
  }
  if (decision.to == 0) {
    status.share.start_time.reset();
    status.share.resize_time.reset();
  }
  status.share.desired_learners = decision.to;
  status.share.admitted_minimum = decision.minimum;
  status.share.entitlement = decision.entitlement;
  status.share.entitled_gpus = decision.entitled_gpus;
  status.share.demand_learners = decision.demand;
  status.share.jobs_before = decision.jobs_before;
  status.share.limited_by = decision.limited_by == planner::GrowthLimit::kNone
                                ? ""
                                : std::string(ToString(decision.limited_by));
  if (decision.to > 0 || IsSuspended(view)) {
    status.waiting.since.reset();
  } else if (!status.waiting.since) {
    status.waiting.since = floor<seconds>(view.soft_state.meter.waiting_since.value_or(now));
  }
  if (status.gpu_product.empty() && status.learners > 0) status.gpu_product = decision.gpu_product;
  if (decision.to > 0) status.pool = view.membership.pool;
  status.waiting.estimated.start = InWholeMinutes(decision.starts_at);
  status.waiting.estimated.completion = InWholeMinutes(decision.ends_at);
  SetReason(status, decision.reason.sentence);
}

api::JobPhase PhaseOf(const JobView& view, const std::optional<JobPlan>& plan,
                      const FailureVerdict& failures) {
  using enum api::JobPhase;
  const bool live = HasLiveLearners(view);
  if (view.job->meta.deleted) return kTerminating;
  if (view.job->spec.suspend) return live ? kSuspending : kSuspended;
  if (!plan || plan->decision.to == 0) return live ? kResizing : kQueued;
  if (!KnowsMembers(view)) return PhaseWithoutMembers(view, failures);
  const Progress& progress = *view.coordinator.progress;
  if (progress.members.empty() || !live) return PhaseWithoutMembers(view, failures);
  if (progress.state == CoordinatorState::kRecovering) return kRecovering;
  const bool settled = progress.state == CoordinatorState::kRunning;
  return settled && IsAsWanted(progress, plan->decision) ? kRunning : kResizing;
}

void ReportConditions(const JobView& view, const std::optional<JobPlan>& plan,
                      const FailureVerdict& failures, WallTime now, api::JobStatus& status) {
  using enum api::ConditionStatus;
  const std::int64_t generation = view.job->meta.generation;
  const std::string phase(ToString(status.phase));
  SetCondition(status, kConditionHasPlace, PlaceOf(view, plan), generation, now);
  SetCondition(status, kConditionRunning,
               status.learners > 0 ? Verdict{kTrue, "Training", "its learners train"}
                                   : Verdict{kFalse, phase, "no learner trains"},
               generation, now);

  const api::Condition* told = api::FindCondition(status, kConditionProgressing);
  std::string last_failure = failures.newest;
  if (last_failure.empty() && failures.failures.count > 0 && told != nullptr &&
      told->reason == "LearnerFailed") {
    last_failure = told->message;
  }
  Verdict verdict{kTrue, phase, ""};
  if (auto problem = FindProblem(view, last_failure, now)) {
    if (!problem->detailed && told != nullptr && told->reason == problem->reason) {
      problem->message = told->message;
    }
    verdict = {kFalse, problem->reason, problem->message};
  } else if (StillKept(plan, told)) {
    verdict = {told->status, told->reason, told->message};
  } else if (status.phase == api::JobPhase::kQueued || status.phase == api::JobPhase::kSuspended ||
             status.phase == api::JobPhase::kTerminating) {
    const bool vain = plan && NeedsUserAction(plan->decision.reason.code);
    verdict = {kFalse, vain ? std::string(ToString(plan->decision.reason.code)) : phase,
               status.reason};
  }
  SetCondition(status, kConditionProgressing, std::move(verdict), generation, now);
}

void ReportCheckpoints(const JobView& view, WallTime now, api::JobStatus& status) {
  if (!view.coordinator.progress || !view.coordinator.progress->last_checkpoint) return;
  const ReportedCheckpoint& checkpoint = *view.coordinator.progress->last_checkpoint;
  Verdict verdict{api::ConditionStatus::kTrue, "Written", "the last checkpoint was written"};
  if (!checkpoint.error.empty()) {
    verdict = {api::ConditionStatus::kFalse, checkpoint.reason, checkpoint.error};
    // The message of each attempt names another file: that is no news.
    const api::Condition* told = api::FindCondition(status, kConditionCheckpointsWritten);
    if (told != nullptr && told->reason == verdict.reason) verdict.message = told->message;
  }
  SetCondition(status, kConditionCheckpointsWritten, std::move(verdict), view.job->meta.generation,
               now);
}

WriteDecision DecideWrite(const StatusChange& change, const std::string& uid,
                          const std::optional<WallTime>& stats_written, WallTime now) {
  const api::JobStatus& before = change.before;
  const api::JobStatus& after = change.after;
  api::JobStatus without_figures = after;
  without_figures.waiting.attained_gpu_seconds = before.waiting.attained_gpu_seconds;
  without_figures.waiting.recent_service = before.waiting.recent_service;
  // These two follow from fields that are news.
  without_figures.gpus = before.gpus;
  without_figures.waiting.since = before.waiting.since;
  // No event announces a committed step: a job that trains is looked at from time to time.
  if (without_figures == before) {
    return {.due = after.learners > 0 ? std::optional(now + kStatsEvery) : std::nullopt};
  }
  CopyStats(before, without_figures);
  if (change.same_reason) CopyReason(before, without_figures);
  if (without_figures != before || !stats_written) return {.write = true};
  // The jitter keeps a thousand jobs from writing in the same second.
  const auto jitter = std::hash<std::string>{}(uid) % kStatsJitterSeconds;
  const WallTime due = *stats_written + kStatsEvery + seconds(jitter);
  if (now >= due) return {.write = true};
  return {.due = due};
}

}  // namespace pliant::controller
