#pragma once

#include <cstdint>
#include <vector>

#include "operator/planner/apportion.h"
#include "operator/planner/sharing.h"

// The fair share of queues and jobs, in GPUs, before sizes and nodes are considered: the pool is
// divided among its queues, and each queue's part among its admitted jobs, by the same rule
// (apportion.h).
namespace pliant::planner {

// The claims of the queues to the GPUs that are divided among them.
struct QueueClaims {
  std::vector<Claimant> claimants;  // by queue
  std::int64_t seats = 0;
};
// The claims that queues have if nodes are added: those of the present nodes bound no demand.
QueueClaims ClaimsOnMoreNodes(const Model& model, const std::vector<Share>& shares);

// The figures of each queue. `shares` has the standing of each job; a job
// that waits counts if its queue could admit it.
std::vector<QueueShares> EntitleQueues(const Model& model, const std::vector<Share>& shares);

// Divides the entitlement of each queue among its admitted jobs: sets Share::entitled_gpus.
void EntitleJobs(const Model& model, const Policy& policy, const std::vector<QueueShares>& queues,
                 std::vector<Share>& shares);

}  // namespace pliant::planner
