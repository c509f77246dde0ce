#include "operator/planner/entitlement.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "operator/planner/apportion.h"
#include "operator/planner/sharing_steps.h"

namespace pliant::planner {
namespace {

// Whether only the present nodes count, or others may be added.
enum class Nodes { kPresent, kMore };

LearnerCount UsableOn(const Job& job, Nodes nodes) {
  return nodes == Nodes::kPresent ? job.usable : job.demand;
}

bool CouldBeAdmitted(const Model& model, JobIndex index, Nodes nodes) {
  const Job& job = model.jobs[index];
  const Queue& queue = model.queues[job.queue];
  return queue.admits() && job.view->queue_refusal.empty() && UsableOn(job, nodes) >= job.minimum &&
         model.GpusOf(index, job.minimum) <= queue.limit_gpus();
}

// Sums up what jobs can use; jobs of a namespace together no more than its budget.
class DemandSum {
 public:
  explicit DemandSum(const Model& model) : model_(model) {}

  void Add(const Job& job, std::int64_t gpus) {
    if (job.budget) {
      std::int64_t& of_namespace = by_budget_[*job.budget];
      gpus = std::min(gpus, model_.budgets[*job.budget].gpus - of_namespace);
      of_namespace += gpus;
    }
    gpus_ += gpus;
  }
  std::int64_t gpus() const { return gpus_; }

 private:
  const Model& model_;
  std::map<int, std::int64_t> by_budget_;
  std::int64_t gpus_ = 0;
};

QueueShares FiguresOf(const Model& model, const Queue& queue, const std::vector<Share>& shares,
                      Nodes nodes) {
  QueueShares figures;
  DemandSum demand(model);
  for (const JobIndex index : queue.jobs) {
    const Job& job = model.jobs[index];
    const bool has_place = HasPlace(shares[index].standing);
    if (!has_place && !CouldBeAdmitted(model, index, nodes)) continue;
    demand.Add(job, model.GpusOf(index, UsableOn(job, nodes)));
    if (has_place) figures.kept_gpus += model.GpusOf(index, job.minimum);
  }
  figures.demand_gpus = std::max(std::min(demand.gpus(), queue.limit_gpus()), figures.kept_gpus);
  return figures;
}

std::int64_t HeldGpus(const Model& model, const Queue& queue) {
  std::int64_t held = 0;
  for (const JobIndex index : queue.jobs) {
    held += std::ssize(model.jobs[index].held) * model.jobs[index].needs().gpus;
  }
  return held;
}

// GPUs of a guarantee that the queue does not use and does not lend either.
std::int64_t UnlentGpus(const QueueView& queue, const QueueShares& figures) {
  if (!queue.lending_limit_gpus) return 0;
  const std::int64_t unused =
      std::max<std::int64_t>(queue.guaranteed_gpus - figures.demand_gpus, 0);
  return std::max<std::int64_t>(unused - *queue.lending_limit_gpus, 0);
}

// Sets what is withheld from each queue. Returns the GPUs that are not divided among the queues.
std::int64_t Withhold(const Model& model, std::vector<QueueShares>& queues) {
  std::vector<std::int64_t> unlent;
  std::int64_t all_unlent = 0;
  std::int64_t spare = model.capacity_gpus - model.pool.reserved_gpus;
  for (QueueIndex index = 0; index < std::ssize(queues); ++index) {
    const QueueView& view = *model.queues[index].view;
    spare -= std::min(view.guaranteed_gpus, queues[index].demand_gpus);
    unlent.push_back(UnlentGpus(view, queues[index]));
    all_unlent += unlent.back();
  }
  // GPUs that a queue does not use are not kept for it out of another's guarantee.
  spare = std::max<std::int64_t>(spare, 0);
  for (QueueIndex index = 0; index < std::ssize(queues); ++index) {
    queues[index].withheld_gpus =
        model.pool.reserved_gpus + std::min(all_unlent - unlent[index], spare);
  }
  return model.pool.reserved_gpus + std::min(all_unlent, spare);
}

// Its admitted jobs in the order that decides equal claims, or, by its policy, everything.
std::vector<JobIndex> AdmittedJobs(const Model& model, const Queue& queue,
                                   const std::vector<Share>& shares) {
  std::vector<JobIndex> jobs;
  std::ranges::copy_if(queue.jobs, std::back_inserter(jobs),
                       [&](JobIndex job) { return HasPlace(shares[job].standing); });
  const bool by_priority = queue.view->policy == QueuePolicy::kPriority;
  std::ranges::sort(jobs, {}, [&](JobIndex job) {
    const JobView& view = *model.jobs[job].view;
    return std::tuple(by_priority ? -view.priority : 0, view.submitted, job);
  });
  return jobs;
}

// Also sets the figures of each queue, besides its entitlement.
QueueClaims ClaimsAndFigures(const Model& model, const std::vector<Share>& shares, Nodes nodes,
                             std::vector<QueueShares>& queues) {
  QueueClaims claims;
  for (const Queue& queue : model.queues) {
    queues.push_back(FiguresOf(model, queue, shares, nodes));
    const QueueShares& figures = queues.back();
    claims.claimants.push_back({.weight = queue.view->weight,
                                .floor = queue.view->guaranteed_gpus,
                                .kept = figures.kept_gpus,
                                .cap = figures.demand_gpus,
                                .held = HeldGpus(model, queue)});
  }
  claims.seats = model.capacity_gpus - Withhold(model, queues);
  return claims;
}

}  // namespace

QueueClaims ClaimsOnMoreNodes(const Model& model, const std::vector<Share>& shares) {
  std::vector<QueueShares> queues;
  return ClaimsAndFigures(model, shares, Nodes::kMore, queues);
}

std::vector<QueueShares> EntitleQueues(const Model& model, const std::vector<Share>& shares) {
  std::vector<QueueShares> queues;
  const QueueClaims claims = ClaimsAndFigures(model, shares, Nodes::kPresent, queues);
  const std::vector<std::int64_t> entitled = Apportion(claims.claimants, claims.seats);
  for (std::size_t index = 0; index < queues.size(); ++index) {
    queues[index].entitled_gpus = entitled[index];
  }
  return queues;
}

void Entitle(SharingRound& round) {
  round.sharing.queues = EntitleQueues(round.model, round.sharing.shares);
}

void EntitleJobs(const Model& model, const Policy& policy, const std::vector<QueueShares>& queues,
                 std::vector<Share>& shares) {
  for (QueueIndex index = 0; index < std::ssize(queues); ++index) {
    const Queue& queue = model.queues[index];
    const std::vector<JobIndex> jobs = AdmittedJobs(model, queue, shares);
    std::vector<Claimant> claimants;
    claimants.reserve(jobs.size());
    for (const JobIndex job : jobs) {
      const Job& of = model.jobs[job];
      const std::int64_t gpus = of.needs().gpus;
      const LearnerCount usable = std::max(of.usable, of.minimum);
      claimants.push_back(
          {.weight = of.weight,
           .kept = of.minimum * gpus,
           .cap = usable * gpus,
           .held = std::ssize(of.held) * gpus,
           .speeds = of.speeds ? &*of.speeds : nullptr,
           .seats_per_learner = gpus,
           .hold_percent = std::max(policy.hold_percent, of.view->training.hold_percent)});
    }
    const bool in_order =
        queue.view->policy == QueuePolicy::kPriority || queue.view->policy == QueuePolicy::kFifo;
    const std::int64_t seats = queues[index].entitled_gpus;
    const std::vector<std::int64_t> entitled =
        in_order ? ApportionInOrder(claimants, seats) : Apportion(claimants, seats);
    for (std::size_t at = 0; at < jobs.size(); ++at) shares[jobs[at]].entitled_gpus = entitled[at];
  }
}

}  // namespace pliant::planner
