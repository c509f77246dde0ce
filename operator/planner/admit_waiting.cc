#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "operator/planner/sharing_steps.h"

namespace pliant::planner {
namespace {

using enum AdmissionState;

// Whether so many GPUs are left, but not for this job.
bool IsWithheld(const SharingRound& round, std::int64_t gpus, JobIndex job) {
  const std::int64_t left = round.assignment.free_gpus() - gpus;
  return left >= 0 && left < round.sharing.queues[round.model.jobs[job].queue].withheld_gpus;
}

// No later job of the queue takes what this one waits for: otherwise small jobs could keep a large
// one waiting forever. Running jobs may still grow. GPUs that they leave idle are kept for it only
// from time to time. So is anything, for a job whose minimum is more than its queue's share.
AdmissionState Wait(SharingRound& round, JobIndex job, AdmissionState why) {
  const std::int64_t max_queue_gpus = round.MaxQueueGpus(job);
  const bool is_behind = round.reservations.IsBehind(job);
  const bool keeps_idle =
      !is_behind && round.reservations.KeepsIdleGpus(job, /*at_once=*/round.IsOwed(job));
  if (why == kQueueLimit) {
    round.reservations.HoldLimit(job);
    round.reservations.MarkNodesOf(job);
  } else if (why != kQueueShare || keeps_idle) {
    round.sharing.shares[job].attainable_gpus =
        keeps_idle ? round.reservations.HoldAndClose(job, max_queue_gpus)
                   : round.reservations.Hold(job, max_queue_gpus);
    round.reservations.MarkNodesOf(job);
  }
  if (keeps_idle) round.keepers.push_back({job, why, max_queue_gpus});
  return is_behind ? kQueuedBehind : why;
}

// Why GPUs that become free do not help it; kQueued: they do.
AdmissionState WhyNever(const SharingRound& round, JobIndex job) {
  const Job& of = round.model.jobs[job];
  const Queue& queue = round.model.QueueOf(job);
  if (!of.view->queue_refusal.empty()) return kQueueRefused;
  if (!queue.exists) return kQueueMissing;
  if (!round.model.pool_exists) return kPoolMissing;
  if (!queue.admits()) return kQueueStopped;
  const Fit& fit = round.assignment.FitOf(job);
  if (fit.slots == 0) return kNoNodeFits;
  if (fit.slots < of.minimum) return kTooLarge;
  if (of.demand < of.minimum) return kCapped;
  const bool beyond_limit = round.LackingGpus(job) > queue.limit_gpus();
  return beyond_limit ? kAboveLimit : kQueued;
}

AdmissionState Admit(SharingRound& round, JobIndex job, int jobs_before) {
  if (const AdmissionState never = WhyNever(round, job); never != kQueued) return never;
  if (round.model.jobs[job].is_pod) {
    // Guarantees come before it. Nothing is held if it does not fit: no job shrinks in vain.
    const std::int64_t entitled = round.sharing.queues[round.model.jobs[job].queue].entitled_gpus;
    const bool is_within = round.UsedByQueueOf(job) + round.LackingGpus(job) <= entitled;
    return is_within && round.GiveMinimum(job) ? kAdmitted : kQueued;
  }
  if (round.QueueOf(job).strict && jobs_before > 0) return kQueuedBehind;
  // A job that waits for its namespace's budget does not hold GPUs from others.
  if (!round.assignment.IsInBudget(job, round.model.jobs[job].minimum)) return kOverBudget;
  const std::int64_t lacking = round.LackingGpus(job);
  const std::int64_t sum = round.UsedByQueueOf(job) + lacking;
  if (lacking > round.MaxQueueGpus(job)) return Wait(round, job, kQueueShare);
  if (sum > round.model.QueueOf(job).limit_gpus()) return Wait(round, job, kQueueLimit);
  if (sum <= round.MaxQueueGpus(job)) {
    // A reservation does not stand in the way of a guarantee.
    if (round.IsOwed(job)) round.assignment.OpenAll();
    if (round.GiveMinimum(job)) return kAdmitted;
    if (round.IsOwed(job) && round.Reclaim(job)) return kAdmitted;
  }
  return Wait(round, job, IsWithheld(round, lacking, job) ? kReserved : kQueued);
}

// A reclaim may release more than is taken. Jobs that ran go before pods of other workloads.
void KeepReclaimed(SharingRound& round) {
  for (const QueueIndex queue : round.QueueOrder()) {
    for (const JobIndex job : round.WaitingJobs(queue)) {
      const bool fits_limit = round.UsedByQueueOf(job) + round.LackingGpus(job) <=
                              round.model.queues[queue].limit_gpus();
      if (round.Standing(job) != kReclaimed || !fits_limit || !round.GiveMinimum(job)) continue;
      round.reservations.Forget(job);
      std::erase_if(round.keepers, [job](const Keeper& keeper) { return keeper.job == job; });
    }
  }
}

void AdmitFrom(SharingRound& round, QueueIndex queue) {
  round.reservations.ForgetMarks();
  int waiting = 0;
  for (const JobIndex job : round.WaitingJobs(queue)) {
    const AdmissionState standing = Admit(round, job, waiting);
    if (standing == kAdmitted) continue;
    round.sharing.shares[job].jobs_before = waiting;
    if (WaitsInQueue(standing)) ++waiting;
    // A job that is released now says so, and not what it waits for.
    AdmissionState& now = round.Standing(job);
    if (now != kReleased && now != kReclaimed) now = standing;
  }
}

}  // namespace

void AdmitWaiting(SharingRound& round) {
  for (const QueueIndex queue : round.QueueOrder()) {
    if (!round.model.queues[queue].is_of_pods()) AdmitFrom(round, queue);
  }
}

void Yield(SharingRound& round) {
  for (QueueIndex queue = 0; queue < std::ssize(round.model.queues); ++queue) {
    if (!round.model.queues[queue].is_of_pods()) continue;
    KeepReclaimed(round);
    AdmitFrom(round, queue);
  }
}

}  // namespace pliant::planner
