#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/controller/job_view.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// What the planner is to know, made of what was listed. `jobs`: those that are planned. `pods`: all
// of the cluster; those that are learners of `jobs` count there, all others as taking room on
// their nodes, also where the scheduler or their own affinity only promises it to them.
planner::ClusterSnapshot BuildSnapshot(const std::vector<std::shared_ptr<const api::Node>>& nodes,
                                       const std::vector<std::shared_ptr<const api::Pod>>& pods,
                                       const std::vector<const JobView*>& jobs, WallTime now);

// One job, as the planner sees it.
planner::JobView PlannerView(const JobView& view);

}  // namespace pliant::controller
