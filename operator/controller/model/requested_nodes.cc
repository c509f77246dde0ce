#include "operator/controller/model/requested_nodes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pliant::controller {

std::vector<RequestedNodes> RequestedNodesOf(const planner::ClusterSnapshot& snapshot,
                                             const planner::Plan& plan, const QueueBook& book) {
  std::vector<RequestedNodes> all;
  // Most plans request none, and have thousands of jobs.
  const auto requests = [](const planner::PoolShare& pool) { return pool.requested > 0; };
  if (std::ranges::none_of(plan.pools, requests)) return all;
  for (const planner::JobView& job : snapshot.jobs) {
    const planner::Decision* decision =
        planner::FindDecision(plan, job.key.name_space, job.key.name);
    if (decision == nullptr || !decision->nodes) continue;
    RequestedNodes nodes{.job = job.key,
                         .learners = decision->nodes->learners,
                         .needs = job.needs,
                         .gpu_resource = book.ResourceOf(job.pool)};
    // If both together are too many terms, the pool's hold: no tenant may escape those.
    nodes.needs.node_affinity = BothHold(book.TermsOfPool(job.pool), nodes.needs.node_affinity);
    if (const std::string& product = decision->nodes->gpu_product; !product.empty()) {
      nodes.needs.node_selector[planner::kGpuProductLabel] = product;
    }
    all.push_back(std::move(nodes));
  }
  return all;
}

}  // namespace pliant::controller
