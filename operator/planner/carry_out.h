#pragma once

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

namespace pliant::planner {

// The job's share in the next snapshot, once the decision is carried out, `now`.
JobShare ShareAfter(const JobShare& before, const Decision& decision, WallTime now);

}  // namespace pliant::planner
