#include "operator/controller/job_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "operator/controller/learner_ending.h"
#include "operator/controller/names.h"

namespace pliant::controller {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kFirstAvoidance{5};
constexpr seconds kLongestAvoidance{600};
// A node that has been good for so long after its time is forgiven.
constexpr minutes kForgiveAfter{10};

const api::Pod* FindPod(const JobView& view, const std::string& name) {
  const auto found = std::ranges::find_if(
      view.learners, [&](const api::Pod& pod) { return pod.meta.name == name; });
  return found == view.learners.end() ? nullptr : &*found;
}

void RememberStarts(const JobView& view, WallTime now, JobMemory& memory) {
  std::erase_if(memory.starting_since, [&](const auto& entry) {
    const api::Pod* pod = FindPod(view, entry.first);
    return pod == nullptr || pod->ended() || IsGated(*pod);
  });
  for (const api::Pod& pod : view.learners) {
    if (!pod.ended() && !IsGated(pod)) memory.starting_since.emplace(pod.meta.name, now);
  }
  std::erase_if(memory.mount_causes,
                [&](const auto& entry) { return !memory.starting_since.contains(entry.first); });
}

void RememberLeavers(const JobView& view, WallTime now, JobMemory& memory) {
  std::erase_if(memory.leaving_since, [&](const auto& entry) {
    const api::Pod* pod = FindPod(view, entry.first);
    return pod == nullptr || pod->ended();
  });
  // After a restart of the operator the coordinator still knows whom it was told to let go.
  if (!view.coordinator.progress) return;
  for (const ReportedLearner& learner : view.coordinator.progress->learners) {
    const api::Pod* pod = FindPod(view, learner.name);
    if (learner.state == "Leaving" && pod != nullptr && !pod->ended()) {
      memory.leaving_since.emplace(learner.name, now);
    }
  }
}

// A learner that fails on a node that is avoided was placed there before: a node that loses power
// with four learners on it has failed once.
void Strike(NodeStrikes& node, WallTime at) {
  if (at < node.avoid_until) return;
  const int doublings = std::min(node.count, 10);
  ++node.count;
  node.avoid_until = std::max(node.avoid_until,
                              at + std::min(kFirstAvoidance * (1 << doublings), kLongestAvoidance));
}

// What was dropped counts until the program asks for another number.
void RememberLearnersAsked(const JobView& view, JobMemory& memory) {
  const auto& progress = view.coordinator.progress;
  if (progress && progress->total_steps &&
      progress->learners_asked != memory.learners_asked_dropped) {
    memory.learners_asked_dropped.reset();
  }
}

// Whether its end was the will of the operator, or of who deletes pods.
bool WasSentAway(const api::Pod& pod, const JobMemory& memory) {
  return pod.deleting() || memory.leaving_since.contains(pod.meta.name);
}

void RememberNodes(const JobView& view, WallTime now, JobMemory& memory) {
  std::set<std::string> seen;
  for (const api::Pod& pod : view.learners) {
    const auto ending = EndingOf(pod);
    if (!ending || NodeOf(pod).empty()) continue;
    if (ending->end == LearnerEnd::kCompleted || ending->end == LearnerEnd::kDisrupted) continue;
    seen.insert(pod.meta.uid);
    if (memory.ends_seen.contains(pod.meta.uid)) continue;
    // One that says so without having been told is no failure: it may have been told by somebody
    // else. But its successor waits as that of a failed one, or there would be no end of them.
    if (ending->end == LearnerEnd::kDrained && WasSentAway(pod, memory)) continue;
    Strike(memory.nodes[NodeOf(pod)], std::min(now, ending->finished.value_or(now)));
  }
  memory.ends_seen = std::move(seen);
  std::erase_if(memory.nodes,
                [&](const auto& entry) { return entry.second.avoid_until + kForgiveAfter < now; });
}

// What a job that runs has attained at least, as far as its pods tell.
double GpuSecondsOf(const std::vector<api::Pod>& learners, WallTime now) {
  double sum = 0;
  for (const api::Pod& pod : learners) {
    const api::ContainerStatus* program = api::FindContainer(pod, kLearnerContainer);
    if (pod.ended() || program == nullptr || !program->running_since) continue;
    sum += std::max(0.0, std::chrono::duration<double>(now - *program->running_since).count());
  }
  return sum;
}

// A GPU counts from when its learner's program runs. What was attained is not written for its own
// sake: a new leader learns the rest from the pods.
void RememberGpuSeconds(const JobView& view, WallTime now, JobMemory& memory) {
  memory.gpu_seconds =
      std::max(memory.gpu_seconds, static_cast<double>(view.job->status.attained_gpu_seconds));
  const int gpus = view.job->spec.elastic.gpus_per_learner;
  if (!memory.gpu_seconds_until) {
    memory.gpu_seconds = std::max(memory.gpu_seconds, gpus * GpuSecondsOf(view.learners, now));
  } else if (now > *memory.gpu_seconds_until) {
    const auto passed = std::chrono::duration<double>(now - *memory.gpu_seconds_until).count();
    memory.gpu_seconds += passed * static_cast<double>(memory.gpus_used);
  }
  memory.gpu_seconds_until = now;
  memory.gpus_used = gpus * std::ranges::count_if(view.learners, [](const api::Pod& pod) {
                       return !pod.ended() && IsRunning(pod);
                     });
}

// Learners that the coordinator names, and whose pods were seen to go or were looked for in vain.
// Before RememberNamed, which keeps only those that are there.
void RememberGone(const JobView& view, JobMemory& memory) {
  const auto& progress = view.coordinator.progress;
  if (!progress) return;
  std::set<std::string> gone;
  for (const ReportedLearner& learner : progress->learners) {
    const bool was_there = memory.named.contains(learner.pod_uid);
    if (!was_there && !memory.gone.contains(learner.pod_uid)) continue;
    const auto has_uid = [&](const api::Pod& pod) { return pod.meta.uid == learner.pod_uid; };
    if (std::ranges::none_of(view.learners, has_uid)) gone.insert(learner.pod_uid);
  }
  memory.gone = std::move(gone);
}

void RememberNamed(const JobView& view, JobMemory& memory) {
  const auto& progress = view.coordinator.progress;
  // An operator that was restarted does not know yet whom the coordinator has named.
  const bool first_look = !memory.gpu_seconds_until;
  const bool trained = !view.job->status.membership_id.empty();
  std::set<std::string> named, met;
  for (const api::Pod& pod : view.learners) {
    const auto is_this = [&](const ReportedLearner& learner) {
      return learner.name == pod.meta.name && learner.pod_uid == pod.meta.uid;
    };
    if (memory.named.contains(pod.meta.uid) ||
        (progress && std::ranges::any_of(progress->learners, is_this))) {
      named.insert(pod.meta.uid);
      met.insert(pod.meta.uid);
    }
    if (memory.met.contains(pod.meta.uid) || (first_look && trained && IsRunning(pod))) {
      met.insert(pod.meta.uid);
    }
  }
  memory.named = std::move(named);
  memory.met = std::move(met);
}

// Learners that live are made of the template that was admitted: another one has to wait until they
// have left.
void RememberNeeds(const JobView& view, JobMemory& memory) {
  if (!IsAdmitted(view.job->spec, view.job->status) || !NeedsAreGuessed(view)) return;
  const auto newest = std::ranges::find_if(
      view.learners.rbegin(), view.learners.rend(),
      [](const api::Pod& pod) { return !pod.ended() && pod.asks.needs != nullptr; });
  if (newest == view.learners.rend()) return;
  memory.admitted_needs = {view.job->spec.learner_template.hash, newest->asks.needs};
}

void RememberTimesAhead(const JobView& view, WallTime now, JobMemory& memory) {
  const api::JobStatus& status = view.job->status;
  const std::map<WallTime, WallTime> before = std::exchange(memory.times_ahead, {});
  for (const auto& time : {status.start_time, status.resize_time, status.completion_time}) {
    if (!time) continue;
    if (const auto known = before.find(*time); known != before.end()) {
      memory.times_ahead.insert(*known);
    } else if (*time > now) {
      memory.times_ahead.emplace(*time, now);
    }
  }
}

void RememberMinimum(const JobView& view, WallTime now, JobMemory& memory) {
  const auto live = std::ranges::count_if(view.learners, [&](const api::Pod& pod) {
    return !pod.ended() && !pod.deleting() && !memory.leaving_since.contains(pod.meta.name);
  });
  const bool below =
      view.job->status.desired_learners > 0 && live < view.job->spec.elastic.min_learners;
  if (!below) {
    memory.below_minimum_since.reset();
  } else if (!memory.below_minimum_since) {
    memory.below_minimum_since = now;
  }
}

void RememberWaiting(const JobView& view, WallTime now, JobMemory& memory) {
  const api::JobStatus& status = view.job->status;
  const bool waits = status.desired_learners == 0 && !view.job->spec.suspend && !status.finished();
  if (!waits) {
    memory.waiting_since.reset();
  } else if (!memory.waiting_since) {
    // A job that this program sees for the first time, and that never had a GPU, has waited all its
    // life.
    const bool seen = memory.gpu_seconds_until.has_value();
    memory.waiting_since = seen || status.attained_gpu_seconds > 0 ? now : view.job->meta.created;
  }
}

// Whether granted learners wait for it.
bool ServesLearners(const Action& action) {
  return !std::holds_alternative<CheckTemplate>(action) &&
         !std::holds_alternative<FindMountCause>(action) &&
         !std::holds_alternative<LookForPod>(action) &&
         !std::holds_alternative<DeletePod>(action) &&
         !std::holds_alternative<DeleteService>(action) &&
         !std::holds_alternative<DeleteJob>(action);
}

}  // namespace

JobMemory Remember(const JobView& view, WallTime now) {
  JobMemory memory = view.memory;
  RememberStarts(view, now, memory);
  RememberNodes(view, now, memory);  // while it is known who of the ended was told to leave
  RememberLeavers(view, now, memory);
  RememberGone(view, memory);
  RememberNamed(view, memory);
  RememberLearnersAsked(view, memory);
  RememberWaiting(view, now, memory);
  RememberGpuSeconds(view, now, memory);
  RememberMinimum(view, now, memory);
  RememberTimesAhead(view, now, memory);
  RememberNeeds(view, memory);
  if (view.coordinator.reachable) memory.coordinator_tries = 0;
  return memory;
}

void RememberRefusal(std::span<const Action> undone, const std::string& refusal, WallTime now,
                     JobMemory& memory) {
  memory.refusal = refusal;
  memory.unanswered = false;
  if (std::ranges::none_of(undone, ServesLearners)) return;
  if (!memory.refused_grants) memory.refused_grants = RefusedGrants{.since = now, .gates = {}};
  for (const Action& action : undone) {
    const auto* gate = std::get_if<OpenGate>(&action);
    if (gate != nullptr) memory.refused_grants->gates.insert(gate->pod);
  }
}

void RememberNoAnswer(const api::ObjectMeta& job, std::span<const Action> undone,
                      const std::string& why, WallTime now, JobMemory& memory) {
  RememberRefusal(undone, why, now, memory);
  memory.unanswered = true;
  if (undone.empty() || !memory.refused_grants) return;
  // Until it is clear that there is none the pod counts, but it is nothing to build on.
  if (const auto* learner = std::get_if<CreateLearner>(&undone.front())) {
    memory.refused_grants->gates.insert(LearnerPodName(job, learner->number));
  }
}

void ForgetRefusal(JobMemory& memory) {
  memory.refusal.clear();
  memory.unanswered = false;
  memory.refused_grants.reset();
}

}  // namespace pliant::controller
