#pragma once

#include <string>

#include "operator/planner/cluster_snapshot.h"
#include "operator/replay/debug_snapshot.h"

namespace pliant::simulator {

enum class WhatIfJobs {
  kChanged,  // those that get another size, other nodes or another reason
  kAll,
};

// For people: the plan of the snapshot and the plan of the edited one, job by job, then the totals
// of the queues and of the cluster. `edited`: the snapshot after edits (Apply).
std::string WhatIf(const replay::DebugSnapshot& debug, const planner::ClusterSnapshot& edited,
                   WhatIfJobs jobs = WhatIfJobs::kChanged);

}  // namespace pliant::simulator
