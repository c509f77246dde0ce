#include "operator/controller/lifecycle/learner_policy.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <system_error>

#include "base/earliest.h"
#include "operator/controller/lifecycle/coordinator_policy.h"
#include "operator/controller/model/learner_ending.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

// Time left to a learner that outlived its grace period: then the kubelet kills it.
constexpr seconds kLastGrace{15};
// Added to the grace period while the coordinator is unreachable: to replace it may take longer
// than this.
constexpr seconds kMaxUnnotified{60};

// A coordinator may name any learner: these bound what that costs the API server.
constexpr std::size_t kMaxSearch = 16;
constexpr seconds kSearchEvery{5};

// More than ever leave a job at once.
constexpr std::size_t kMaxGone = 2048;

// Whether the job ever had a learner of this name.
bool WasMade(const JobView& view, const std::string& name) {
  const std::size_t dash = name.rfind('-');
  int number = -1;
  if (dash == std::string::npos) return false;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + dash + 1, end, number);
  return read.ec == std::errc{} && read.ptr == end && number >= 0 &&
         number < view.job->status.next_learner && name == LearnerPodName(view.job->meta, number);
}

bool Exists(const JobView& view, const ReportedLearner& learner) {
  return std::ranges::any_of(view.learners, [&](const api::Pod& pod) {
    return pod.meta.name == learner.name && pod.meta.uid == learner.pod_uid;
  });
}

const api::Pod* FindLive(const JobView& view, const std::string& name) {
  const auto found = std::ranges::find_if(
      view.learners, [&](const api::Pod& pod) { return pod.meta.name == name; });
  return found == view.learners.end() || found->ended() ? nullptr : &*found;
}

DeletePod Delete(const api::Pod& pod, std::string why,
                 std::optional<seconds> grace = std::nullopt) {
  return {.pod = pod.meta.name, .uid = pod.meta.uid, .grace = grace, .why = std::move(why)};
}

void DrainDropped(const JobView& view, const std::vector<std::string>& dropped, WallTime now,
                  LearnerOutcome& outcome) {
  for (const std::string& name : dropped) {
    const api::Pod* pod = FindLive(view, name);
    if (pod == nullptr || pod->deleting()) continue;
    if (!HasStarted(view, *pod)) {
      outcome.actions.emplace_back(Delete(*pod, "no longer granted"));
    } else if (view.coordinator.reachable) {
      outcome.leaving_since.emplace(name, now);
    } else {
      const auto before = view.soft_state.clocks.unnotified_since.find(name);
      const WallTime since =
          before == view.soft_state.clocks.unnotified_since.end() ? now : before->second;
      const WallTime due = since + view.job->spec.resize.grace_period + kMaxUnnotified;
      outcome.unnotified_since.emplace(name, since);
      if (now >= due) {
        outcome.actions.emplace_back(
            Delete(*pod, "its coordinator is unreachable and cannot ask it to leave"));
      } else {
        KeepEarliest(due, outcome.look_again);
      }
    }
  }
}

void EndOverdue(const JobView& view, WallTime now, LearnerOutcome& outcome) {
  for (const auto& [name, since] : outcome.leaving_since) {
    const api::Pod* pod = FindLive(view, name);
    if (pod == nullptr || pod->deleting()) continue;
    const WallTime due = since + view.job->spec.resize.grace_period;
    if (now >= due) {
      outcome.actions.emplace_back(
          Delete(*pod, "did not leave within its grace period", kLastGrace));
    } else {
      KeepEarliest(due, outcome.look_again);
    }
  }
}

void Open(const JobView& view, const std::vector<std::string>& names, LearnerOutcome& outcome) {
  for (const std::string& name : names) {
    const api::Pod* pod = FindLive(view, name);
    if (pod == nullptr || pod->deleting() || !IsGated(*pod) || pod->meta.uid.empty()) continue;
    OpenGate open{.pod = name,
                  .uid = pod->meta.uid,
                  .resource_version = pod->meta.resource_version,
                  .gates_left = pod->scheduling_gates};
    std::erase(open.gates_left, kGate);
    outcome.actions.emplace_back(std::move(open));
  }
}

// Whether learners report that the training is complete, but the coordinator, which knows whether
// they were its learners, has not reported yet.
bool MayBeComplete(const JobView& view) {
  return !view.coordinator.progress &&
         std::ranges::any_of(view.learners, [](const api::Pod& learner) {
           const auto ending = EndingOf(learner);
           return ending && ending->end == LearnerEnd::kCompleted;
         });
}

void Create(const JobView& view, const std::vector<planner::NewLearner>& granted,
            LearnerOutcome& outcome) {
  // A learner's pod contains the address of the coordinator's Service, which is known soon.
  if (!view.service || view.service->cluster_ip.empty()) return;
  // Secrets are created before a coordinator's pod: if the pod exists, the learners' Secret exists,
  // too.
  if (CurrentCoordinator(view) == nullptr) return;
  if (MayBeComplete(view)) return;
  // New numbers are also above those of all existing pods: status may have been restored from a
  // backup.
  for (const api::Pod& pod : view.learners) {
    outcome.next_learner = std::max(outcome.next_learner, LearnerNumber(pod).value_or(-1) + 1);
  }
  for (const planner::NewLearner& learner : granted) {
    outcome.actions.emplace_back(CreateLearner{.number = outcome.next_learner++,
                                               .place = learner,
                                               .coordinator_ip = view.service->cluster_ip});
  }
}

}  // namespace

LearnerOutcome DecideLearners(const JobView& view, const JobPlan& plan, WallTime now) {
  LearnerOutcome outcome{.next_learner = view.job->status.next_learner,
                         .leaving_since = view.soft_state.clocks.leaving_since};
  DrainDropped(view, plan.decision.drop, now, outcome);
  EndOverdue(view, now, outcome);
  Open(view, plan.open, outcome);
  Create(view, plan.decision.create, outcome);
  return outcome;
}

LearnerOutcome TerminateLearners(const JobView& view, bool completed, WallTime now) {
  LearnerOutcome outcome{.next_learner = view.job->status.next_learner,
                         .leaving_since = view.soft_state.clocks.leaving_since};
  const WallTime due = TimeOf(view, view.job->status.completion_time).value_or(now) +
                       view.job->spec.resize.grace_period;
  for (const api::Pod& pod : view.learners) {
    if (pod.ended() || pod.deleting()) continue;
    // Learners of a complete job are about to exit by themselves, with a termination message.
    if (completed && IsRunning(pod) && now < due) {
      KeepEarliest(due, outcome.look_again);
    } else {
      outcome.actions.emplace_back(Delete(pod, "its job has ended"));
    }
  }
  return outcome;
}

PodSearch LookForPods(const JobView& view, WallTime now) {
  PodSearch search{.searched_at = view.soft_state.contacts.searched_at};
  std::vector<LookForPod>& missing = search.actions;
  for (const std::string& pod : view.overdue_pods) missing.push_back({.pod = pod, .uid = ""});
  if (view.coordinator.progress && CurrentCoordinator(view) != nullptr) {
    for (const ReportedLearner& known : view.coordinator.progress->learners) {
      if (missing.size() >= kMaxSearch) break;
      const bool is_known =
          view.soft_state.contacts.gone.contains(known.pod_uid) || Exists(view, known);
      if (is_known || !WasMade(view, known.name)) continue;
      missing.push_back({.pod = known.name, .uid = known.pod_uid});
    }
  }
  if (missing.empty()) return search;
  if (search.searched_at && now < *search.searched_at + kSearchEvery) {
    missing.clear();
    search.look_again = *search.searched_at + kSearchEvery;
    return search;
  }
  if (missing.size() > kMaxSearch) missing.resize(kMaxSearch);
  search.searched_at = now;
  return search;
}

std::vector<PlannedLearner> WantedLearners(const JobView& view,
                                           const std::map<std::string, WallTime>& leaving) {
  std::vector<PlannedLearner> learners;
  for (const api::Pod& pod : view.learners) {
    if (pod.meta.uid.empty()) continue;  // its creation is under way
    PlannedLearner learner{.name = pod.meta.name, .pod_uid = pod.meta.uid};
    if (pod.ended()) {
      learner.state = DesiredLearnerState::kEnded;
    } else if (pod.deleting() || leaving.contains(pod.meta.name)) {
      learner.state = DesiredLearnerState::kLeaving;
    }
    learners.push_back(std::move(learner));
  }
  if (view.coordinator.progress) {
    std::size_t gone = 0;
    for (const ReportedLearner& known : view.coordinator.progress->learners) {
      // The coordinator may name any learner.
      if (!WasMade(view, known.name) || gone == kMaxGone) continue;
      if (Exists(view, known)) continue;
      DesiredLearnerState state = DesiredLearnerState::kEnded;
      if (!view.soft_state.contacts.gone.contains(known.pod_uid)) {
        // The stores may not show the pod yet: that is no sign of its end, and its state stays.
        state =
            known.state == "Leaving" ? DesiredLearnerState::kLeaving : DesiredLearnerState::kWanted;
      }
      learners.push_back({known.name, known.pod_uid, state});
      ++gone;
    }
  }
  std::ranges::sort(learners);
  // A process that came back is reported along with the one before it.
  const auto twice = std::ranges::unique(learners);
  learners.erase(twice.begin(), twice.end());
  return learners;
}

}  // namespace pliant::controller
