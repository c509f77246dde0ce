#include <algorithm>
#include <optional>
#include <vector>

#include "operator/planner/sharing_steps.h"

namespace pliant::planner {
namespace {

using enum AdmissionState;

void KeepMinimum(SharingRound& round, JobIndex job) {
  const Job& of = round.model.jobs[job];
  if (round.QueueOf(job).stop == QueueStop::kDrain || round.GiveMinimum(job)) return;
  const std::optional<WallTime>& since = of.view->share.below_minimum_since;
  const bool too_long =
      since && round.model.snapshot->now - *since >= round.policy.below_minimum_grace;
  if (too_long) {
    round.Standing(job) = kReleased;
    return;
  }
  Assignment& assignment = round.assignment;
  for (const HeldAt& held : of.held_at) {
    for (LearnerCount kept = 0; kept < held.learners; ++kept) {
      if (assignment.LearnersOf(job) >= of.demand || !assignment.AddOn(job, held.node)) break;
    }
  }
  // With no learner left to keep, it has lost its place and waits like the others.
  if (assignment.LearnersOf(job) > 0) round.Standing(job) = kBelowMinimum;
}

}  // namespace

// A job that has its minimum goes first, so that it does not lose it to one that lacks it. Among
// these, guarantees go first.
void KeepMinimums(SharingRound& round) {
  std::vector<JobIndex> present = round.PresentJobs();
  std::ranges::stable_sort(present, {}, [&](JobIndex job) {
    return std::ssize(round.model.jobs[job].held) < round.model.jobs[job].minimum;
  });
  std::vector<JobIndex> beyond;
  for (const JobIndex job : present) {
    round.IsOwed(job) || round.QueueOf(job).guaranteed_gpus == 0 ? KeepMinimum(round, job)
                                                                 : beyond.push_back(job);
  }
  for (const JobIndex job : beyond) KeepMinimum(round, job);
}

}  // namespace pliant::planner
