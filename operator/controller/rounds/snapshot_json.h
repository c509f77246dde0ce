#pragma once

#include <string>

#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// The planner's input as JSON, for /debug/snapshot: all of it except the uids of jobs, with which
// others could pass for their owners.
std::string SnapshotJson(const planner::ClusterSnapshot& snapshot);

}  // namespace pliant::controller
