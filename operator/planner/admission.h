#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/reservations.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Decides which jobs have a place: it sets Share::standing and assigns minimums. In this order:
// admitted jobs keep their minimum; a queue below its guarantee gets GPUs back; jobs that wait are
// admitted as far as their queue is entitled. GPUs beyond all minimums count as free, because the
// jobs that have them can be shrunk.
class Admission {
 public:
  // All outlive it. `passing`: jobs that get idle GPUs although another job waits for them.
  Admission(const Model& model, const Policy& policy, Protection protection,
            std::span<const JobIndex> passing, Sharing& sharing);

  void Run();

  // Call after GPUs beyond the minimums were given out. Returns jobs that wait, in order, whose
  // minimums fit into what is left.
  std::vector<JobIndex> WhoMayPass();

 private:
  struct Keeper {
    JobIndex job = 0;
    AdmissionState why = AdmissionState::kQueued;
    std::int64_t max_queue_gpus = 0;
  };

  void KeepPresent();
  void KeepMinimum(JobIndex job);
  void RestoreMinimums();
  void Protect();
  void HoldLostMinimums();
  void KeepReclaimed();
  void AdmitWaiting(QueueIndex queue);
  AdmissionState Admit(JobIndex job, int jobs_before);
  AdmissionState WhyNever(JobIndex job) const;
  AdmissionState Wait(JobIndex job, AdmissionState why);
  template <typename Give>
  bool OnSomeProduct(JobIndex job, const Give& give);
  bool GiveMinimum(JobIndex job);
  bool Reclaim(JobIndex job);
  bool ReclaimOnProduct(JobIndex job);
  bool IsOwed(JobIndex job) const;
  bool IsWithheld(std::int64_t gpus, JobIndex job) const;
  bool Pass(JobIndex job);
  void Entitle();
  std::vector<JobIndex> PresentJobs() const;
  std::vector<JobIndex> WaitingJobs(QueueIndex queue) const;
  std::vector<QueueIndex> QueueOrder() const;
  std::int64_t LackingGpus(JobIndex job) const;
  std::int64_t UsedByQueueOf(JobIndex job) const;
  // The most that admissions may bring the queue of the job to.
  std::int64_t MaxQueueGpus(JobIndex job) const;
  const QueueView& QueueOf(JobIndex job) const { return *model_.QueueOf(job).view; }
  AdmissionState& Standing(JobIndex job) { return sharing_.shares[job].standing; }

  const Model& model_;
  const Policy& policy_;
  const Protection protection_;
  const std::span<const JobIndex> passing_;
  Sharing& sharing_;
  Reservations reservations_;
  // Queue, fit and minimum of jobs for which nothing could be reclaimed.
  using FailedReclaim = std::tuple<QueueIndex, int, LearnerCount>;
  std::set<FailedReclaim> failed_reclaims_;
  std::vector<Keeper> keepers_;  // jobs for which idle GPUs are kept
};

}  // namespace pliant::planner
