#pragma once

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

namespace pliant::planner {

// Marks the new learners for which the quotas of their namespaces have no room yet. A quota counts
// a learner until its pod has ended, whether it leaves or waits behind its gate; the sizes of a
// plan count only those that stay. So where GPUs move within a full quota, a learner is created
// when another one's pod has ended.
void AwaitRoomInQuotas(const ClusterSnapshot& snapshot, Plan& plan);

}  // namespace pliant::planner
