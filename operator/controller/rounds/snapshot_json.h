#pragma once

#include <string>

#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// The planner's input as JSON, for /debug/snapshot: all of it but the uids of jobs, by which others
// could pass for their owners.
std::string SnapshotJson(const planner::ClusterSnapshot& snapshot);

}  // namespace pliant::controller
