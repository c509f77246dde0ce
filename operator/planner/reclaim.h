#pragma once

#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/reservations.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Releases admitted jobs of queues that have more than their guarantee, until the minimum of `job`
// fits, and assigns that. The newest ones are released first, of equally new ones those of least
// priority; at first only jobs without which their queue still has its guarantee. GPUs that are
// only held for jobs that wait are not borrowed. Returns whether it fits; otherwise nothing has
// changed.
bool ReclaimFor(JobIndex job, const Model& model, Reservations& reservations, Sharing& sharing);

}  // namespace pliant::planner
