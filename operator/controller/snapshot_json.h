#pragma once

#include <string>

#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// The planner's whole input as JSON, for /debug/snapshot.
std::string SnapshotJson(const planner::ClusterSnapshot& snapshot);

}  // namespace pliant::controller
