#include "operator/controller/lifecycle/problems.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/earliest.h"
#include "base/format.h"
#include "base/utf8.h"
#include "operator/controller/lifecycle/coordinator_policy.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

// A scheduler judges a pod, and a node mounts its volumes, within a few seconds, unless something
// is wrong.
constexpr seconds kStartTime{20};
// A coordinator that has not answered for this long is reported.
constexpr seconds kUnreachableAfter{15};
// One that refuses plans is replaced after this time, unless it was replaced shortly before.
constexpr seconds kRefusedAfter{10};
// Importing a framework and building a large model takes well under a minute.
constexpr seconds kHelloTime{60};

bool IsImageProblem(std::string_view waiting) {
  return waiting == "ErrImagePull" || waiting == "ImagePullBackOff" ||
         waiting == "InvalidImageName" || waiting == "ErrImageNeverPull" ||
         waiting == "ImageInspectError" || waiting == "RegistryUnavailable";
}

bool IsStartProblem(std::string_view waiting) {
  return waiting == "CreateContainerConfigError" || waiting == "CreateContainerError" ||
         waiting == "RunContainerError" || waiting == "CrashLoopBackOff";
}

std::optional<Problem> ContainerProblem(const api::Pod& pod) {
  for (const api::ContainerStatus& container : pod.containers) {
    const std::string& waiting = container.waiting_reason;
    if (IsImageProblem(waiting)) {
      return Problem{.reason = "ImagePullFailed",
                     .message = Format("pod {}, container {}: {}", pod.meta.name, container.name,
                                       container.waiting_message),
                     .detailed = waiting != "ImagePullBackOff"};
    }
    if (IsStartProblem(waiting)) {
      return Problem{.reason = waiting == "CrashLoopBackOff" ? "CrashLoop" : "ContainerCannotStart",
                     .message = Format("pod {}, container {}: {}", pod.meta.name, container.name,
                                       container.waiting_message),
                     .detailed = waiting != "CrashLoopBackOff"};
    }
  }
  return std::nullopt;
}

bool IsLateToStart(const api::Pod& pod, const JobSoftState& state, WallTime now) {
  const auto since = state.clocks.starting_since.find(pod.meta.name);
  return since != state.clocks.starting_since.end() && now >= since->second + kStartTime;
}

std::optional<Problem> SilenceOfScheduler(const api::Pod& pod, const JobSoftState& state,
                                          WallTime now) {
  if (!pod.node_name.empty() || !IsLateToStart(pod, state, now)) return std::nullopt;
  return Problem{
      .reason = "SchedulerSilent",
      .message = Format("pod {}: no scheduler has looked for a node for it for {} s. Check "
                        "spec.template.spec.schedulerName, and that this scheduler runs",
                        pod.meta.name, kStartTime.count())};
}

std::optional<Problem> SchedulingProblem(const api::Pod& pod, const JobSoftState& state,
                                         WallTime now) {
  const api::PodCondition* scheduled = api::FindCondition(pod, "PodScheduled");
  // The API server sets this reason when it creates a pod with gates; only a scheduler changes it.
  if (scheduled == nullptr || scheduled->reason == "SchedulingGated")
    return SilenceOfScheduler(pod, state, now);
  if (scheduled->status || scheduled->reason != "Unschedulable") return std::nullopt;
  const bool volume = scheduled->message.find("persistentvolumeclaim") != std::string::npos ||
                      scheduled->message.find("volume node affinity") != std::string::npos;
  return Problem{.reason = volume ? "VolumeMissing" : "Unschedulable",
                 .message = Format("pod {}: {}", pod.meta.name, scheduled->message)};
}

bool IsUnmounted(const api::Pod& pod, const JobSoftState& state, WallTime now) {
  const api::PodCondition* ready = api::FindCondition(pod, "PodReadyToStartContainers");
  return !pod.ended() && !pod.deleting() && !pod.node_name.empty() &&
         IsLateToStart(pod, state, now) && ready != nullptr && !ready->status;
}

// Reported only after the pod's events were read: the first message is the one that becomes an
// event.
std::optional<Problem> MountProblem(const api::Pod& pod, const JobSoftState& state, WallTime now) {
  const auto cause = state.mount_causes.find(pod.meta.name);
  if (!IsUnmounted(pod, state, now) || cause == state.mount_causes.end()) return std::nullopt;
  const bool known = !cause->second.text.empty();
  return Problem{.reason = "VolumeNotMounted",
                 .message = Format("pod {} waits on node {}: {}", pod.meta.name, pod.node_name,
                                   known ? cause->second.text
                                         : "its volumes cannot be mounted, or it gets no "
                                           "network; `kubectl describe pod` says which")};
}

std::optional<WallTime> RunningSince(const api::Pod& pod, std::string_view name) {
  const api::ContainerStatus* container = api::FindContainer(pod, name);
  return container == nullptr ? std::nullopt : container->running_since;
}

// Finds a program that runs but does not contact the coordinator. Only a coordinator that answers
// can show that, and the learners have to find a new one first.
std::optional<Problem> SilenceOf(const JobView& view, const api::Pod& learner, WallTime now) {
  const CoordinatorView& coordinator = view.coordinator;
  if (learner.ended() || learner.deleting() || view.coordinators.empty() ||
      !coordinator.reachable) {
    return std::nullopt;
  }
  const auto runs = RunningSince(learner, kLearnerContainer);
  const auto heard = RunningSince(view.coordinators.back(), kCoordinatorContainer);
  if (!runs || !heard || now < std::max(*runs, *heard) + kHelloTime ||
      std::ranges::contains(coordinator.progress->learners, learner.meta.name,
                            &ReportedLearner::name)) {
    return std::nullopt;
  }
  return Problem{
      .reason = "LearnerNotConnected",
      .message = Format(
          "learner {} has run for more than {} s and has not contacted the job's "
          "coordinator: it still loads, it hangs, or its program does not use Pliant, or uses "
          "an older version of it; see `kubectl logs {}`",
          learner.meta.name, kHelloTime.count(), learner.meta.name)};
}

std::optional<Problem> PodProblem(const api::Pod& pod, const JobSoftState& state, WallTime now) {
  if (pod.ended() || pod.deleting()) return std::nullopt;
  if (auto problem = ContainerProblem(pod)) return problem;
  if (auto problem = SchedulingProblem(pod, state, now)) return problem;
  return MountProblem(pod, state, now);
}

}  // namespace

const api::Pod* FindUnmounted(const JobView& view, WallTime now) {
  for (const std::vector<api::Pod>* pods : {&view.coordinators, &view.learners}) {
    const auto found = std::ranges::find_if(
        *pods, [&](const api::Pod& pod) { return IsUnmounted(pod, view.soft_state, now); });
    if (found != pods->end()) return &*found;
  }
  return nullptr;
}

std::optional<WallTime> NextProblemCheck(const JobView& view, WallTime now) {
  std::optional<WallTime> earliest;
  const auto consider = [&](const std::optional<WallTime>& since, seconds timeout) {
    if (since && *since + timeout > now) KeepEarliest(*since + timeout, earliest);
  };
  for (const auto& [pod, since] : view.soft_state.clocks.starting_since)
    consider(since, kStartTime);
  for (const api::Pod& pod : view.learners)
    consider(RunningSince(pod, kLearnerContainer), kHelloTime);
  for (const api::Pod& pod : view.coordinators) {
    consider(RunningSince(pod, kCoordinatorContainer), kHelloTime);
  }
  consider(view.coordinator.silent_since, kUnreachableAfter);
  consider(view.coordinator.refused_since, kRefusedAfter);
  return earliest;
}

std::string StartProblemOf(const JobView& view, WallTime now) {
  constexpr std::size_t kMaxBytes = 256;
  for (const api::Pod& learner : view.learners) {
    if (IsRunning(learner)) continue;
    if (const auto problem = PodProblem(learner, view.soft_state, now))
      return CutAtCharacter(problem->message, kMaxBytes);
  }
  return CutAtCharacter(view.soft_state.refusals.message, kMaxBytes);
}

std::optional<Problem> FindProblem(const JobView& view, const std::string& last_failure,
                                   WallTime now) {
  for (const std::vector<api::Pod>* pods : {&view.coordinators, &view.learners}) {
    for (const api::Pod& pod : *pods) {
      if (auto problem = PodProblem(pod, view.soft_state, now)) return problem;
    }
  }
  for (const api::Pod& learner : view.learners) {
    if (auto problem = SilenceOf(view, learner, now)) return problem;
  }
  // The server is asked for nothing while a job is to have no GPUs: its last refusal is past.
  const bool asks_for_pods = view.job->status.share.desired_learners > 0 || HasLiveLearners(view);
  if (asks_for_pods && !view.soft_state.refusals.message.empty()) {
    return Problem{
        .reason = view.soft_state.refusals.unanswered ? "UnansweredByServer" : "RefusedByServer",
        .message = view.soft_state.refusals.message};
  }
  const CoordinatorView& coordinator = view.coordinator;
  if (coordinator.refused_since && now >= *coordinator.refused_since + kRefusedAfter) {
    return Problem{
        .reason = "PlanRefused",
        .message =
            "the job's coordinator refuses the operator's plans, because it has one of a "
            "later leader: the operator's Lease was deleted or restored, or the "
            "coordinator makes it up; it is being replaced, training continues"};
  }
  if (coordinator.reachable && coordinator.progress &&
      !coordinator.progress->problem_reason.empty()) {
    return Problem{.reason = coordinator.progress->problem_reason,
                   .message = coordinator.progress->problem_message};
  }
  if (!last_failure.empty()) return Problem{.reason = "LearnerFailed", .message = last_failure};
  if (coordinator.silent_since && now >= *coordinator.silent_since + kUnreachableAfter) {
    return Problem{.reason = "CoordinatorUnreachable",
                   .message =
                       "the job's coordinator does not answer; training continues without it, "
                       "but the job cannot be resized"};
  }
  return std::nullopt;
}

}  // namespace pliant::controller
