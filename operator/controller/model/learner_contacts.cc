#include "operator/controller/model/learner_contacts.h"

#include <algorithm>
#include <utility>

#include "operator/controller/model/job_view.h"

namespace pliant::controller {
namespace {

// Keeps, in `gone`, learners that the coordinator still reports although their pods disappeared or
// a search did not find them. Call it before ObserveNamed, which keeps only existing pods.
void ObserveGone(const JobView& view, LearnerContacts& contacts) {
  const auto& progress = view.coordinator.progress;
  if (!progress) return;
  std::set<std::string> gone;
  for (const ReportedLearner& learner : progress->learners) {
    const bool was_there = contacts.named.contains(learner.pod_uid);
    if (!was_there && !contacts.gone.contains(learner.pod_uid)) continue;
    const auto has_uid = [&](const api::Pod& pod) { return pod.meta.uid == learner.pod_uid; };
    if (std::ranges::none_of(view.learners, has_uid)) gone.insert(learner.pod_uid);
  }
  contacts.gone = std::move(gone);
}

void ObserveNamed(const JobView& view, bool first_look, LearnerContacts& contacts) {
  const auto& progress = view.coordinator.progress;
  // A restarted operator does not know yet which learners the coordinator has reported.
  const bool trained = !view.job->status.progress.membership_id.empty();
  std::set<std::string> named, met;
  for (const api::Pod& pod : view.learners) {
    const auto is_this = [&](const ReportedLearner& learner) {
      return learner.name == pod.meta.name && learner.pod_uid == pod.meta.uid;
    };
    if (contacts.named.contains(pod.meta.uid) ||
        (progress && std::ranges::any_of(progress->learners, is_this))) {
      named.insert(pod.meta.uid);
      met.insert(pod.meta.uid);
    }
    if (contacts.met.contains(pod.meta.uid) || (first_look && trained && IsRunning(pod))) {
      met.insert(pod.meta.uid);
    }
  }
  contacts.named = std::move(named);
  contacts.met = std::move(met);
}

}  // namespace

void ObserveContacts(const JobView& view, bool first_look, LearnerContacts& contacts) {
  ObserveGone(view, contacts);
  ObserveNamed(view, first_look, contacts);
}

void OnPodGone(const std::string& uid, LearnerContacts& contacts) { contacts.gone.insert(uid); }

}  // namespace pliant::controller
