#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "operator/planner/sharing_steps.h"

namespace pliant::planner {
namespace {

using enum AdmissionState;

// Whether its minimum fits into what is left. Assigns it.
bool Pass(SharingRound& round, JobIndex job) {
  Assignment& assignment = round.assignment;
  const LearnerCount lacking = round.model.jobs[job].minimum - assignment.LearnersOf(job);
  const std::int64_t gpus = round.model.GpusOf(job, lacking);
  if (round.UsedByQueueOf(job) + gpus > round.model.QueueOf(job).limit_gpus()) return false;
  const std::int64_t withheld = round.sharing.queues[round.model.jobs[job].queue].withheld_gpus;
  return assignment.free_gpus() - gpus >= withheld &&
         round.OnSomeProduct(job, [&] { return assignment.Add(job, lacking); });
}

}  // namespace

std::vector<JobIndex> WhoMayPass(SharingRound& round) {
  std::vector<JobIndex> passing;
  Assignment& assignment = round.assignment;
  if (assignment.free_gpus() == 0) return passing;
  const Assignment::Moment before = assignment.Now();
  HoldLost(round);
  for (const Keeper& keeper : round.keepers) {
    if (Pass(round, keeper.job)) {
      passing.push_back(keeper.job);
    } else if (keeper.why == kQueueLimit) {
      round.reservations.HoldLimit(keeper.job);
    } else {
      round.reservations.HoldAndClose(keeper.job, keeper.max_queue_gpus);
    }
  }
  for (const QueueIndex queue : round.QueueOrder()) {
    for (const JobIndex job : round.WaitingJobs(queue)) {
      const bool passes = assignment.LearnersOf(job) >= round.model.jobs[job].minimum;
      if (passes || !WaitsInQueue(round.Standing(job))) continue;
      if (Pass(round, job)) {
        passing.push_back(job);
      } else if (round.model.queues[queue].view->strict) {
        break;
      }
    }
  }
  round.reservations.ReleaseAll();
  assignment.ReturnTo(before);
  return passing;
}

void LetPass(SharingRound& round, std::span<const JobIndex> passing) {
  round.reservations.ReleaseAll();
  for (const JobIndex job : passing) round.GiveMinimum(job);
}

}  // namespace pliant::planner
