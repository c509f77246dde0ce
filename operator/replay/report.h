#pragma once

#include <string>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

// Plans as text for people.
namespace pliant::replay {

// Whether two decisions on a job give it the same size, the same nodes and the same reason.
bool ActsAlike(const planner::Decision& left, const planner::Decision& right);

// Tables of all jobs, queues and pools.
std::string ReportPlan(const planner::Plan& plan);

// Says what a new job gets, and which other jobs have another size, other nodes or another reason
// with it than without it.
std::string ReportNewJob(const planner::JobView& job, const planner::Plan& without,
                         const planner::Plan& with);

}  // namespace pliant::replay
