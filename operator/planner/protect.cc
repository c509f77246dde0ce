#include <algorithm>
#include <cstdint>

#include "operator/planner/sharing_steps.h"
#include "operator/planner/sizes.h"

namespace pliant::planner {
namespace {

using enum AdmissionState;

}  // namespace

// Jobs that lost nodes, but whose queue is guaranteed the GPUs.
void RestoreGuaranteed(SharingRound& round) {
  for (JobIndex job = 0; job < std::ssize(round.model.jobs); ++job) {
    const bool lacks = round.Standing(job) == kBelowMinimum &&
                       round.model.jobs[job].demand >= round.model.jobs[job].minimum;
    if (lacks && round.IsOwed(job)) round.Reclaim(job);
  }
}

// Gives protected jobs their present size before other jobs are considered, as far as their queue
// is entitled to it: a job may keep GPUs from others of its queue, but not from other queues.
void Protect(SharingRound& round) {
  if (round.protection == Protection::kNobody) return;
  for (const JobIndex job : round.PresentJobs()) {
    if (round.Standing(job) != kAdmitted) continue;
    const Job& of = round.model.jobs[job];
    LearnerCount size = of.protected_size.value_or(0);
    if (round.protection == Protection::kFreshAndFrozen) {
      size = std::max(size, of.frozen_size.value_or(0));
    }
    while (round.assignment.LearnersOf(job) < size &&
           round.UsedByQueueOf(job) + of.needs().gpus <= round.MaxQueueGpus(job) &&
           round.assignment.Add(job)) {
    }
    const LearnerCount has = round.assignment.LearnersOf(job);
    const LearnerCount efficient = LargestEfficientSize(*of.view, has);
    if (efficient < has) round.assignment.Remove(job, has - efficient);
  }
}

// A job that lost its minimum gets it back before jobs that wait.
void HoldLost(SharingRound& round) {
  for (JobIndex job = 0; job < std::ssize(round.model.jobs); ++job) {
    if (round.Standing(job) == kBelowMinimum) round.reservations.Hold(job, INT64_MAX);
  }
}

}  // namespace pliant::planner
