#pragma once

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

namespace pliant::planner {

// What a job's next snapshot says of its share once the decision is carried out, `now`.
JobShare ShareAfter(const JobShare& before, const Decision& decision, WallTime now);

}  // namespace pliant::planner
