#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/planner/assignment.h"
#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// The plan of one pool, by number. Lists by job may be empty.
struct PlannedPool {
  const Model& model;
  const Sharing& fair;   // without cooldowns
  const Sharing& given;  // with them
  const Assignment& placed;
  const std::vector<std::optional<WallTime>>& ends;
  const std::vector<std::optional<WallTime>>& starts;
  const std::vector<std::optional<NodeRequest>>& nodes;  // to request
};

// One for each job of the pool, with its learners and its reason.
std::vector<Decision> DecisionsOf(const PlannedPool& pool);

// GPUs that are kept free for pods of other workloads.
std::int64_t YieldedGpus(const Model& model, const Assignment& placed);

}  // namespace pliant::planner
