#pragma once

#include <cstdint>
#include <vector>

#include "operator/planner/sharing.h"

// The fair share of queues and jobs, in GPUs, before sizes and nodes are considered: the pool is
// divided among its queues, and each queue's part among its admitted jobs, by the same rule
// (apportion.h).
namespace pliant::planner {

// The figures of each queue. `shares` has the standing of each job; a job
// that waits counts if its queue could admit it.
std::vector<QueueShares> EntitleQueues(const Model& model, const std::vector<Share>& shares);

// Divides the entitlement of each queue among its admitted jobs: sets Share::entitled_gpus.
void EntitleJobs(const Model& model, const std::vector<QueueShares>& queues,
                 std::vector<Share>& shares);

}  // namespace pliant::planner
