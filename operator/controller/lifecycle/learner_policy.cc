#include "operator/controller/lifecycle/learner_policy.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/earliest.h"
#include "operator/controller/lifecycle/coordinator_policy.h"
#include "operator/controller/model/learner_ending.h"
#include "operator/controller/model/learner_names.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

// A coordinator may name any learner: these bound what that costs the API server.
constexpr std::size_t kMaxSearch = 16;
constexpr seconds kSearchEvery{5};

void Open(const JobView& view, const std::vector<std::string>& names, Grants& grants) {
  for (const std::string& name : names) {
    const api::Pod* pod = FindLiveLearner(view, name);
    if (pod == nullptr || pod->deleting() || !IsGated(*pod) || pod->meta.uid.empty()) continue;
    OpenGate open{.pod = name,
                  .uid = pod->meta.uid,
                  .resource_version = pod->meta.resource_version,
                  .gates_left = pod->scheduling_gates};
    std::erase(open.gates_left, kGate);
    grants.actions.emplace_back(std::move(open));
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

void Create(const JobView& view, const std::vector<planner::NewLearner>& learners, Grants& grants) {
  // A learner's pod contains the address of the coordinator's Service, which is known soon.
  if (!view.service || view.service->cluster_ip.empty()) return;
  // Secrets are created before a coordinator's pod: if the pod exists, the learners' Secret exists,
  // too.
  if (CurrentCoordinator(view) == nullptr) return;
  if (MayBeComplete(view)) return;
  // New numbers are also above those of all existing pods: status may have been restored from a
  // backup.
  for (const api::Pod& pod : view.learners) {
    grants.next_learner = std::max(grants.next_learner, LearnerNumber(pod).value_or(-1) + 1);
  }
  for (const planner::NewLearner& learner : learners) {
    if (learner.waits_for_quota) continue;
    grants.actions.emplace_back(CreateLearner{.number = grants.next_learner++,
                                              .place = learner,
                                              .coordinator_ip = view.service->cluster_ip});
  }
}

}  // namespace

Grants DecideGrants(const JobView& view, const JobPlan& plan) {
  Grants grants{.next_learner = view.job->status.objects.next_learner};
  Open(view, plan.open, grants);
  Create(view, plan.decision.create, grants);
  return grants;
}

Termination TerminateLearners(const JobView& view, bool completed, WallTime now) {
  Termination outcome;
  const WallTime due = TimeOf(view, view.job->status.completion_time).value_or(now) +
                       view.job->spec.resize.grace_period;
  for (const api::Pod& pod : view.learners) {
    if (pod.ended() || pod.deleting()) continue;
    // Learners of a complete job are about to exit by themselves, with a termination message.
    if (completed && IsRunning(pod) && now < due) {
      KeepEarliest(due, outcome.look_again);
    } else {
      outcome.actions.emplace_back(
          DeletePod{.pod = pod.meta.name, .uid = pod.meta.uid, .why = "its job has ended"});
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

}  // namespace pliant::controller
