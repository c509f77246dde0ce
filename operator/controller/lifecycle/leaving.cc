#include "operator/controller/lifecycle/leaving.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/earliest.h"
#include "operator/controller/model/learner_names.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

// Time left to a learner that outlived its grace period: then the kubelet kills it.
constexpr seconds kLastGrace{15};
// Added to the grace period while the coordinator is unreachable: to replace it may take longer
// than this.
constexpr seconds kMaxUnnotified{60};

// More than ever leave a job at once.
constexpr std::size_t kMaxGone = 2048;

DeletePod Delete(const api::Pod& pod, std::string why,
                 std::optional<seconds> grace = std::nullopt) {
  return {.pod = pod.meta.name, .uid = pod.meta.uid, .grace = grace, .why = std::move(why)};
}

void DrainDropped(const JobView& view, const std::vector<std::string>& dropped, WallTime now,
                  Leaving& leaving) {
  for (const std::string& name : dropped) {
    const api::Pod* pod = FindLiveLearner(view, name);
    if (pod == nullptr || pod->deleting()) continue;
    if (!HasStarted(view, *pod)) {
      leaving.deletions.push_back(Delete(*pod, "no longer granted"));
    } else if (view.coordinator.reachable) {
      leaving.leaving_since.emplace(name, now);
    } else {
      const auto before = view.soft_state.clocks.unnotified_since.find(name);
      const WallTime since =
          before == view.soft_state.clocks.unnotified_since.end() ? now : before->second;
      const WallTime due = since + view.job->spec.resize.grace_period + kMaxUnnotified;
      leaving.unnotified_since.emplace(name, since);
      if (now >= due) {
        leaving.deletions.push_back(
            Delete(*pod, "its coordinator is unreachable and cannot ask it to leave"));
      } else {
        KeepEarliest(due, leaving.look_again);
      }
    }
  }
}

void EndOverdue(const JobView& view, WallTime now, Leaving& leaving) {
  for (const auto& [name, since] : leaving.leaving_since) {
    const api::Pod* pod = FindLiveLearner(view, name);
    if (pod == nullptr || pod->deleting()) continue;
    const WallTime due = since + view.job->spec.resize.grace_period;
    if (now >= due) {
      leaving.deletions.push_back(
          Delete(*pod, "did not leave within its grace period", kLastGrace));
    } else {
      KeepEarliest(due, leaving.look_again);
    }
  }
}

// All learners that exist, and those that the coordinator still reports. The latter have ended if
// their pods disappeared or a search did not find them. `leaving`: by name, in addition to those
// whose pods are being deleted.
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

}  // namespace

Leaving DecideLeaving(const JobView& view, const planner::Decision& decision, WallTime now) {
  Leaving leaving{.leaving_since = view.soft_state.clocks.leaving_since};
  DrainDropped(view, decision.drop, now, leaving);
  EndOverdue(view, now, leaving);
  leaving.plan = WantedLearners(view, leaving.leaving_since);
  return leaving;
}

}  // namespace pliant::controller
