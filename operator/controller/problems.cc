#include "operator/controller/problems.h"

#include <chrono>
#include <format>
#include <string_view>

#include "operator/controller/names.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

// Mounting a volume takes a few seconds at most, unless something is wrong with it.
constexpr seconds kMountTime{20};
// A coordinator that does not answer for so long is worth a word.
constexpr seconds kSilence{15};

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
                     .message = std::format("pod {}, container {}: {}", pod.meta.name,
                                            container.name, container.waiting_message),
                     .detailed = waiting != "ImagePullBackOff"};
    }
    if (IsStartProblem(waiting)) {
      return Problem{.reason = waiting == "CrashLoopBackOff" ? "CrashLoop" : "ContainerCannotStart",
                     .message = std::format("pod {}, container {}: {}", pod.meta.name,
                                            container.name, container.waiting_message),
                     .detailed = waiting != "CrashLoopBackOff"};
    }
  }
  return std::nullopt;
}

std::optional<Problem> SchedulingProblem(const api::Pod& pod) {
  const api::PodCondition* scheduled = api::FindCondition(pod, "PodScheduled");
  if (scheduled == nullptr || scheduled->status || scheduled->reason != "Unschedulable") {
    return std::nullopt;
  }
  const bool volume = scheduled->message.find("persistentvolumeclaim") != std::string::npos ||
                      scheduled->message.find("volume node affinity") != std::string::npos;
  return Problem{.reason = volume ? "VolumeMissing" : "Unschedulable",
                 .message = std::format("pod {}: {}", pod.meta.name, scheduled->message)};
}

// The kubelet tells why only in events; that the pod's sandbox is not ready is in its status.
std::optional<Problem> MountProblem(const api::Pod& pod, const JobMemory& memory, WallTime now) {
  const auto since = memory.starting_since.find(pod.meta.name);
  const api::PodCondition* ready = api::FindCondition(pod, "PodReadyToStartContainers");
  if (pod.node_name.empty() || since == memory.starting_since.end() ||
      now < since->second + kMountTime || ready == nullptr || ready->status) {
    return std::nullopt;
  }
  return Problem{
      .reason = "VolumeNotMounted",
      .message = std::format("pod {} waits on node {}: its volumes cannot be mounted, or "
                             "it gets no network; `kubectl describe pod` says which",
                             pod.meta.name, pod.node_name)};
}

std::optional<Problem> PodProblem(const api::Pod& pod, const JobMemory& memory, WallTime now) {
  if (pod.ended() || pod.deleting()) return std::nullopt;
  if (auto problem = ContainerProblem(pod)) return problem;
  if (auto problem = SchedulingProblem(pod)) return problem;
  return MountProblem(pod, memory, now);
}

}  // namespace

std::optional<Problem> FindProblem(const JobView& view, const std::string& last_failure,
                                   WallTime now) {
  for (const std::vector<api::Pod>* pods : {&view.coordinators, &view.learners}) {
    for (const api::Pod& pod : *pods) {
      if (auto problem = PodProblem(pod, view.memory, now)) return problem;
    }
  }
  if (!view.memory.refusal.empty()) {
    return Problem{.reason = "RefusedByServer", .message = view.memory.refusal};
  }
  const CoordinatorView& coordinator = view.coordinator;
  if (coordinator.reachable && coordinator.progress &&
      !coordinator.progress->problem_reason.empty()) {
    return Problem{.reason = coordinator.progress->problem_reason,
                   .message = coordinator.progress->problem_message};
  }
  if (!last_failure.empty()) return Problem{.reason = "LearnerFailed", .message = last_failure};
  if (coordinator.silent_since && now >= *coordinator.silent_since + kSilence) {
    return Problem{.reason = "CoordinatorUnreachable",
                   .message =
                       "the job's coordinator does not answer; training goes on without it, "
                       "but the job is not resized"};
  }
  return std::nullopt;
}

}  // namespace pliant::controller
