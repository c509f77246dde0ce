#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/reservations.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// A job for which idle GPUs are kept.
struct Keeper {
  JobIndex job = 0;
  AdmissionState why = AdmissionState::kQueued;
  std::int64_t max_queue_gpus = 0;
};

// A sharing while its steps (sharing_steps.h) are taken, and what they have in common. GPUs beyond
// all minimums count as free until they are filled, because the jobs that have them can be shrunk.
class SharingRound {
 public:
  // Both outlive it.
  SharingRound(const Model& model, const Policy& policy, Protection protection);
  SharingRound(const SharingRound&) = delete;
  SharingRound& operator=(const SharingRound&) = delete;

  const Model& model;
  const Policy& policy;
  const Protection protection;
  Sharing sharing;
  Assignment& assignment = sharing.assignment;
  Reservations reservations;
  std::vector<Keeper> keepers;
  // By queue: fit and minimum of jobs for which nothing could be reclaimed.
  std::map<QueueIndex, std::set<std::pair<int, LearnerCount>>> failed_reclaims;

  AdmissionState& Standing(JobIndex job) { return sharing.shares[job].standing; }
  const QueueView& QueueOf(JobIndex job) const { return *model.QueueOf(job).view; }

  std::int64_t LackingGpus(JobIndex job) const;  // of its minimum
  std::int64_t UsedByQueueOf(JobIndex job) const;
  // The most that admissions may bring the queue of the job to.
  std::int64_t MaxQueueGpus(JobIndex job) const;
  // Whether its minimum is within the guarantee of its queue.
  bool IsOwed(JobIndex job) const;

  // Queues that lack guaranteed GPUs first, then by their claim to the next GPU. Pods of other
  // workloads come last: otherwise a job whose queue is guaranteed what they took would evict
  // another.
  std::vector<QueueIndex> QueueOrder() const;
  // Admitted jobs, queue by queue.
  std::vector<JobIndex> PresentJobs() const;
  // New jobs of the queue, and those that have just lost their place.
  std::vector<JobIndex> WaitingJobs(QueueIndex queue) const;

  // Tries the GPU products that the job may use until `give` returns true.
  template <typename Give>
  bool OnSomeProduct(JobIndex job, const Give& give);
  // Admits the job if its minimum fits.
  bool GiveMinimum(JobIndex job);
  // The same at the cost of jobs of queues that have more than their guarantee.
  bool Reclaim(JobIndex job);

 private:
  bool ReclaimOnProduct(JobIndex job);
};

template <typename Give>
bool SharingRound::OnSomeProduct(JobIndex job, const Give& give) {
  const Job& of = model.jobs[job];
  const bool may_choose = !of.other_fits.empty() && assignment.LearnersOf(job) == 0;
  if (give()) return true;
  if (!may_choose) return false;
  for (const int fit : of.other_fits) {
    assignment.UseFit(job, fit);
    if (give()) return true;
  }
  assignment.UseFit(job, of.fit);
  return false;
}

}  // namespace pliant::planner
