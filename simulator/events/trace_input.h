#pragma once

#include <span>
#include <string>

#include "operator/planner/cluster_snapshot.h"
#include "simulator/events/event_engine.h"
#include "simulator/events/profiled_work.h"
#include "simulator/model/profile.h"
#include "simulator/model/workload.h"

namespace pliant::simulator {

struct TraceOptions {
  int nodes = 16;
  int gpus_per_node = 4;
  planner::QueueView queue;  // of all jobs
  BatchRule batch = BatchRule::kFixed;
};

// A cluster of equal nodes, and the jobs of a workload in one queue, each from one learner to as
// many as its batch has samples for. Learners have one GPU. `profiles` outlives the input.
RunInput InputOf(const Profiles& profiles, std::span<const JobSpec> jobs,
                 const TraceOptions& options);

}  // namespace pliant::simulator
