#pragma once

#include <cstdint>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// `gpu_seconds`, after each half-life halved, and linear in between. Neither is negative.
std::int64_t Decayed(std::int64_t gpu_seconds, Seconds age, Seconds half_life);

// The order in which jobs of one queue are admitted. By its policy: FairShare compares turns,
// begin of waiting + (1 GPU-hour + GPU time attained lately) · 5000 / priority, in seconds. So
// priority orders jobs that come at the same time. A turn does not move while a job waits: no job
// that comes later overtakes it for ever, and one that is blocked by it does not, either. Priority
// and Fifo compare what their names say. Older jobs come first among equals.
std::vector<JobIndex> InAdmissionOrder(const Model& model, std::vector<JobIndex> jobs);

// Jobs that wait for GPUs or nodes: the first ones of all queues, then the second ones, and so on.
std::vector<JobIndex> JobsInTurn(const Model& model, const Sharing& sharing);

}  // namespace pliant::planner
