#pragma once

#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Sums up the part of each queue. The GPUs that no queue is guaranteed belong to all queues by
// weight; a queue that holds more than its guarantee and its part of these borrows the rest from
// queues that hold less than their guarantees. All together borrow what all together lend.
std::vector<QueueShare> ReportQueues(const Model& model, const Sharing& sharing);

}  // namespace pliant::planner
