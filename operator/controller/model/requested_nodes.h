#pragma once

#include <string>
#include <vector>

#include "operator/controller/model/queue_book.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// Nodes that a node autoscaler should add for one job: with room for `learners` pods of these
// needs.
struct RequestedNodes {
  planner::JobKey job;
  planner::LearnerCount learners = 0;
  // The needs of one learner. Only nodes of the job's pool, and of its GPU product, satisfy them.
  planner::PodNeeds needs;
  std::string gpu_resource;  // that `needs.resources.gpus` counts; "": that of the operator
  bool operator==(const RequestedNodes&) const = default;
};

// Lists what the plan requests. `snapshot` is its input.
std::vector<RequestedNodes> RequestedNodesOf(const planner::ClusterSnapshot& snapshot,
                                             const planner::Plan& plan, const QueueBook& book);

}  // namespace pliant::controller
