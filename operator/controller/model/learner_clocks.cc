#include "operator/controller/model/learner_clocks.h"

#include <algorithm>

#include "operator/controller/model/job_view.h"
#include "operator/controller/model/learner_names.h"

namespace pliant::controller {
namespace {

void ObserveStarts(const JobView& view, WallTime now, LearnerClocks& clocks) {
  std::erase_if(clocks.starting_since, [&](const auto& entry) {
    const api::Pod* pod = FindLiveLearner(view, entry.first);
    return pod == nullptr || IsGated(*pod);
  });
  for (const api::Pod& pod : view.learners) {
    if (!pod.ended() && !IsGated(pod)) clocks.starting_since.emplace(pod.meta.name, now);
  }
}

void ObserveLeavers(const JobView& view, WallTime now, LearnerClocks& clocks) {
  std::erase_if(clocks.leaving_since,
                [&](const auto& entry) { return FindLiveLearner(view, entry.first) == nullptr; });
  // After a restart of the operator the coordinator still reports which learners are leaving.
  if (!view.coordinator.progress) return;
  for (const ReportedLearner& learner : view.coordinator.progress->learners) {
    if (learner.state == "Leaving" && FindLiveLearner(view, learner.name) != nullptr) {
      clocks.leaving_since.emplace(learner.name, now);
    }
  }
}

void ObserveMinimum(const JobView& view, WallTime now, LearnerClocks& clocks) {
  const auto live = std::ranges::count_if(view.learners, [&](const api::Pod& pod) {
    return !pod.ended() && !pod.deleting() && !clocks.leaving_since.contains(pod.meta.name);
  });
  const bool below =
      view.job->status.share.desired_learners > 0 && live < CountedMinimum(*view.job);
  if (!below) {
    clocks.below_minimum_since.reset();
  } else if (!clocks.below_minimum_since) {
    clocks.below_minimum_since = now;
  }
}

}  // namespace

void ObserveClocks(const JobView& view, WallTime now, LearnerClocks& clocks) {
  ObserveStarts(view, now, clocks);
  ObserveLeavers(view, now, clocks);
  ObserveMinimum(view, now, clocks);
}

}  // namespace pliant::controller
