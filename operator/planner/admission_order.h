#pragma once

#include <cstdint>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// `gpu_seconds`, after each half-life halved, and linear in between. Neither is negative.
std::int64_t Decayed(std::int64_t gpu_seconds, Seconds age, Seconds half_life);

// The order in which jobs of one queue are admitted. By its policy: FairShare compares
// priority · (1 h + time waited) / (1 GPU-hour + GPU time attained lately), so that priority orders
// jobs that never ran, and waiting brings every job to the front in time. Priority and Fifo compare
// what their names say. Older jobs come first among equals.
std::vector<JobIndex> InAdmissionOrder(const Model& model, std::vector<JobIndex> jobs);

// Jobs that wait for GPUs or nodes: the first ones of all queues, then the second ones, and so on.
std::vector<JobIndex> JobsInTurn(const Model& model, const Sharing& sharing);

}  // namespace pliant::planner
