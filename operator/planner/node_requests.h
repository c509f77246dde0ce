#pragma once

#include <optional>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Nodes that a node autoscaler should add, for the minimums of jobs that wait.
struct NodeRequests {
  std::vector<std::optional<NodeRequest>> by_job;  // empty: there are none
  std::int64_t gpus = 0;                           // together
  std::optional<WallTime> again_at;                // when the passing of time alone changes them
};

// Requests nodes for a job if its queue may admit it once they are there: growth beyond minimums
// requests none, and neither does a job beyond the share, guarantee or limit of its queue. `placed`
// is where learners go: what is idle then counts as there. `sharing` is the fair one: what jobs
// keep only for a while, because they are protected, counts as there, too.
NodeRequests RequestNodes(const Model& model, const Policy& policy, const Sharing& sharing,
                          const Assignment& placed);

}  // namespace pliant::planner
