#include "operator/controller/lifecycle/job_events.h"

#include "base/format.h"
#include "operator/api/time.h"
#include "operator/controller/lifecycle/conditions.h"
#include "operator/planner/plan.h"

namespace pliant::controller {
namespace {

std::string ReasonOf(const api::JobStatus& status, std::string_view type) {
  const api::Condition* condition = api::FindCondition(status, type);
  return condition == nullptr ? "" : condition->reason;
}

const api::Condition* News(const api::JobStatus& before, const api::JobStatus& after,
                           std::string_view type) {
  return FindNews(before.conditions, after.conditions, type);
}

// Whether others got the GPUs of a job that wanted them.
bool IsEvicted(const api::JobStatus& status) {
  const std::string reason = ReasonOf(status, kConditionHasPlace);
  return reason == ToString(planner::ReasonCode::kReclaimed) ||
         reason == ToString(planner::ReasonCode::kReleased);
}

// Whether the job had a coordinator and needs one. It has none before the first one was made, which
// the API server may refuse, nor after its learners have left.
bool HadCoordinator(const api::JobStatus& before, const api::JobStatus& after) {
  if (before.share.desired_learners == 0) return false;
  const auto is_told = [](const api::JobStatus& status) {
    const std::string problem = ReasonOf(status, kConditionProgressing);
    return problem == "PlanRefused" || problem == "CoordinatorUnreachable";
  };
  return before.learners > 0 || is_told(before) || is_told(after);
}

bool IsPhaseName(const std::string& reason, const api::JobStatus& status) {
  return reason == ToString(status.phase);
}

}  // namespace

ObjectEvent EventOf(const Eviction& eviction) {
  return {
      .warning = true,
      .reason = "LearnerEvicted",
      .note = Format("{} was evicted from node {}, which the job avoids until {}: {}", eviction.pod,
                     eviction.node, api::FormatTime(eviction.avoid_until), eviction.why)};
}

std::vector<ObjectEvent> EventsOf(const api::JobStatus& before, const api::JobStatus& after) {
  using enum api::ConditionStatus;
  std::vector<ObjectEvent> events;
  if (const auto* admitted = News(before, after, kConditionAdmitted)) {
    if (admitted->status == kTrue) {
      events.push_back({.reason = "Admitted", .note = admitted->message});
    } else if (admitted->reason != "Suspended" && admitted->reason != "Deleted") {
      events.push_back({.warning = true, .reason = admitted->reason, .note = admitted->message});
    }
  }
  if (const auto* readable = News(before, after, kConditionReadable);
      readable != nullptr && readable->status == kFalse) {
    events.push_back({.warning = true, .reason = readable->reason, .note = readable->message});
  }
  if (const auto* limited = News(before, after, kConditionLimited);
      limited != nullptr && limited->status == kTrue) {
    events.push_back({.reason = limited->reason, .note = limited->message});
  }
  if (before.share.desired_learners != after.share.desired_learners && !after.finished()) {
    events.push_back({.warning = IsEvicted(after),
                      .reason = IsEvicted(after) ? ReasonOf(after, kConditionHasPlace) : "Resizing",
                      .note = Format("from {} to {} learners: {}", before.share.desired_learners,
                                     after.share.desired_learners, after.reason)});
  }
  if (after.objects.coordinator_term > before.objects.coordinator_term &&
      HadCoordinator(before, after)) {
    events.push_back(
        {.reason = "CoordinatorReplaced",
         .note = Format("the coordinator of term {} takes over", after.objects.coordinator_term)});
  }
  // Problems only: for a job that progresses, the phase says enough.
  if (const auto* progressing = News(before, after, kConditionProgressing);
      progressing != nullptr && progressing->status == kFalse &&
      !IsPhaseName(progressing->reason, after)) {
    events.push_back(
        {.warning = true, .reason = progressing->reason, .note = progressing->message});
  } else if (after.restarts > before.restarts &&
             ReasonOf(after, kConditionProgressing) == "LearnerFailed") {
    events.push_back({.warning = true,
                      .reason = "LearnerFailed",
                      .note = api::FindCondition(after, kConditionProgressing)->message});
  }
  if (const auto* written = News(before, after, kConditionCheckpointsWritten)) {
    if (written->status == kFalse) {
      events.push_back({.warning = true, .reason = written->reason, .note = written->message});
    } else if (!ReasonOf(before, kConditionCheckpointsWritten).empty()) {
      events.push_back({.reason = "CheckpointsWritten", .note = written->message});
    }
  }
  if (before.phase == after.phase) return events;
  if (after.phase == api::JobPhase::kSucceeded) {
    events.push_back({.reason = "Completed", .note = after.reason});
  } else if (after.phase == api::JobPhase::kFailed) {
    events.push_back(
        {.warning = true, .reason = ReasonOf(after, kConditionFailed), .note = after.reason});
  } else if (after.phase == api::JobPhase::kTerminating) {
    events.push_back({.reason = "Terminating", .note = after.reason});
  } else if (after.phase == api::JobPhase::kSuspended) {
    const bool had_learners = before.phase == api::JobPhase::kSuspending || before.learners > 0;
    events.push_back(
        {.reason = "Suspended",
         .note = had_learners ? "all learners have left" : "it waits until spec.suspend is false"});
  } else if (after.phase == api::JobPhase::kRunning && before.phase == api::JobPhase::kStarting) {
    events.push_back({.reason = "Started", .note = Format("{} learners train", after.learners)});
  }
  return events;
}

}  // namespace pliant::controller
