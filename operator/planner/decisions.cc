#include "operator/planner/decisions.h"

#include <algorithm>
#include <ranges>
#include <span>
#include <string>
#include <utility>

#include "operator/planner/learner_changes.h"
#include "operator/planner/minimums.h"
#include "operator/planner/reasons.h"
#include "operator/planner/reasons_of_size.h"

namespace pliant::planner {
namespace {

std::string ProductOf(const Model& model, JobIndex index, const Assignment& placed) {
  const JobView& job = *model.jobs[index].view;
  const std::span<const Claim> claims = placed.ClaimsOf(index);
  if (job.training.reproducibility != Reproducibility::kBitwise) return "";
  if (!job.training.gpu_product.empty() || claims.empty()) return job.training.gpu_product;
  if (const auto& gpus = placed.FitOf(index).gpus) return std::string(gpus->product);
  // All nodes are of one product. A node that is gone says none.
  const auto on_known_node = std::ranges::find_if(
      claims, [&](const Claim& claim) { return model.nodes[claim.node].view != nullptr; });
  if (on_known_node == claims.end()) return "";
  return std::string(model.nodes[on_known_node->node].gpus.product);
}

// Sums over the jobs of a queue.
struct QueueFacts {
  std::int64_t priorities = 0;  // of jobs with learners
  bool minimums_are_above_shares = false;
};

std::vector<QueueFacts> FactsOfQueues(const Model& model, const Sharing& given) {
  std::vector<QueueFacts> queues(model.queues.size());
  for (const auto& [job, share] : std::views::zip(model.jobs, given.shares)) {
    if (share.learners > 0) queues[job.queue].priorities += job.view->priority;
  }
  for (const auto& [job, share] : std::views::zip(model.jobs, given.shares)) {
    QueueFacts& of = queues[job.queue];
    const std::int64_t entitled = given.queues[job.queue].entitled_gpus;
    if (share.learners > 0 && MinimumIsAboveShare(job, of.priorities, entitled)) {
      of.minimums_are_above_shares = true;
    }
  }
  return queues;
}

Decision DecisionOn(JobIndex index, const PlannedPool& pool, const QueueFacts& queue) {
  const Model& model = pool.model;
  const Job& job = model.jobs[index];
  const Share& fair = pool.fair.shares[index];
  const Share& given = pool.given.shares[index];
  Decision decision{.job = job.view->key,
                    .from = job.present,
                    .to = pool.placed.LearnersOf(index),
                    .entitled_gpus = fair.entitled_gpus,
                    .entitlement = fair.entitled_learners,
                    .demand = job.active ? job.demand : 0,
                    .minimum = MinimumAfter(job, fair, given),
                    .gpu_product = ProductOf(model, index, pool.placed),
                    .cap = job.cap};
  if (WaitsInQueue(given.standing)) decision.jobs_before = given.jobs_before;
  if (given.standing == AdmissionState::kReclaimed) {
    decision.reclaimed_by = model.jobs[*given.reclaimed_for].view->queue;
  }
  if (!pool.ends.empty()) decision.ends_at = pool.ends[index];
  if (!pool.starts.empty()) decision.starts_at = pool.starts[index];
  if (!pool.nodes.empty()) decision.nodes = pool.nodes[index];
  SortLearners(model, index, pool.placed, decision);
  const ReasonFacts facts{.model = model,
                          .job = index,
                          .fair = fair,
                          .given = given,
                          .assignment = pool.given.assignment,
                          .queue = pool.given.queues[job.queue],
                          .priorities = queue.priorities,
                          .minimums_are_above_shares = queue.minimums_are_above_shares,
                          .nodes = decision.nodes};
  decision.limited_by = WhatLimits(facts);
  decision.reason = WhyThisSize(facts);
  return decision;
}

}  // namespace

std::vector<Decision> DecisionsOf(const PlannedPool& pool) {
  const std::vector<QueueFacts> queues = FactsOfQueues(pool.model, pool.given);
  std::vector<Decision> decisions;
  for (JobIndex index = 0; index < std::ssize(pool.model.jobs); ++index) {
    const Job& job = pool.model.jobs[index];
    if (!job.is_pod) decisions.push_back(DecisionOn(index, pool, queues[job.queue]));
  }
  return decisions;
}

std::int64_t YieldedGpus(const Model& model, const Assignment& placed) {
  std::int64_t gpus = 0;
  for (JobIndex index = 0; index < std::ssize(model.jobs); ++index) {
    if (model.jobs[index].is_pod) gpus += model.GpusOf(index, placed.LearnersOf(index));
  }
  return gpus;
}

}  // namespace pliant::planner
