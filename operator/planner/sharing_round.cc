#include "operator/planner/sharing_round.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "operator/planner/admission_order.h"
#include "operator/planner/quotient.h"
#include "operator/planner/reclaim.h"
#include "operator/planner/sharing_steps.h"

namespace pliant::planner {
namespace {

using enum AdmissionState;

// Bounds the time of a plan. By queue: those of one take nothing from another.
constexpr std::size_t kMaxFailedReclaims = 32;

}  // namespace

SharingRound::SharingRound(const Model& of, const Policy& by, Protection protects)
    : model(of),
      policy(by),
      protection(protects),
      sharing{.shares = std::vector<Share>(of.jobs.size()), .assignment = Assignment(of)},
      reservations(of, by, sharing.assignment) {}

std::int64_t SharingRound::LackingGpus(JobIndex job) const {
  return model.GpusOf(job, model.jobs[job].minimum - assignment.LearnersOf(job));
}

std::int64_t SharingRound::UsedByQueueOf(JobIndex job) const {
  const QueueIndex queue = model.jobs[job].queue;
  return assignment.GpusOfQueue(queue) + reservations.HeldOfLimit(queue);
}

std::int64_t SharingRound::MaxQueueGpus(JobIndex job) const {
  const QueueView& queue = QueueOf(job);
  const std::int64_t entitled = sharing.queues[model.jobs[job].queue].entitled_gpus;
  return std::min(std::max(entitled, queue.guaranteed_gpus), model.QueueOf(job).limit_gpus());
}

bool SharingRound::IsOwed(JobIndex job) const {
  return UsedByQueueOf(job) + LackingGpus(job) <= QueueOf(job).guaranteed_gpus;
}

std::vector<QueueIndex> SharingRound::QueueOrder() const {
  struct Turn {
    bool is_of_pods = false;
    bool has_guarantee = false;
    Quotient claim;
    QueueIndex queue = 0;
  };
  std::vector<Turn> turns;
  for (QueueIndex queue = 0; queue < std::ssize(model.queues); ++queue) {
    const QueueView& view = *model.queues[queue].view;
    const std::int64_t used = assignment.GpusOfQueue(queue);
    turns.push_back({model.queues[queue].is_of_pods(),
                     used >= view.guaranteed_gpus,
                     {.numerator = view.weight, .divisor = 2 * used + 1},
                     queue});
  }
  std::ranges::sort(turns, [](const Turn& left, const Turn& right) {
    return std::tuple(left.is_of_pods, left.has_guarantee, right.claim, left.queue) <
           std::tuple(right.is_of_pods, right.has_guarantee, left.claim, right.queue);
  });
  std::vector<QueueIndex> queues;
  std::ranges::transform(turns, std::back_inserter(queues), &Turn::queue);
  return queues;
}

std::vector<JobIndex> SharingRound::PresentJobs() const {
  std::vector<JobIndex> present;
  for (const QueueIndex queue : QueueOrder()) {
    std::vector<JobIndex> jobs;
    std::ranges::copy_if(model.queues[queue].jobs, std::back_inserter(jobs),
                         [this](JobIndex job) { return model.jobs[job].admitted_before(); });
    std::ranges::copy(InAdmissionOrder(model, std::move(jobs)), std::back_inserter(present));
  }
  return present;
}

std::vector<JobIndex> SharingRound::WaitingJobs(QueueIndex queue) const {
  std::vector<JobIndex> jobs;
  std::ranges::copy_if(model.queues[queue].jobs, std::back_inserter(jobs),
                       [this](JobIndex job) { return !HasPlace(sharing.shares[job].standing); });
  return InAdmissionOrder(model, std::move(jobs));
}

bool SharingRound::GiveMinimum(JobIndex job) {
  const Job& of = model.jobs[job];
  const LearnerCount lacking = of.minimum - assignment.LearnersOf(job);
  if (of.demand < of.minimum) return false;
  const auto give = [&] { return assignment.Add(job, lacking); };
  if (!OnSomeProduct(job, give)) return false;
  Standing(job) = kAdmitted;
  return true;
}

bool SharingRound::Reclaim(JobIndex job) {
  if (!QueueOf(job).evicts) return false;
  return OnSomeProduct(job, [&] { return ReclaimOnProduct(job); });
}

bool SharingRound::ReclaimOnProduct(JobIndex job) {
  // A reclaim that failed once fails again while nothing is released, and each try looks at all
  // jobs.
  const Job& of = model.jobs[job];
  auto& failed = failed_reclaims[of.queue];
  const std::pair tried{assignment.FitIndexOf(job), of.minimum};
  if (failed.contains(tried) || failed.size() >= kMaxFailedReclaims) return false;
  if (!ReclaimFor(job, model, reservations, sharing)) {
    failed.insert(tried);
    return false;
  }
  failed_reclaims.clear();
  Standing(job) = kAdmitted;
  Entitle(*this);
  return true;
}

}  // namespace pliant::planner
