#pragma once

#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "simulator/events/run_options.h"
#include "simulator/events/simulated_job.h"
#include "simulator/model/run_record.h"

namespace pliant::simulator {

// The state in which a run begins, and what happens to it later. Names of jobs and of nodes are
// unique; learners of each job fit an empty node.
struct RunInput {
  std::vector<planner::NodeView> nodes;
  std::vector<planner::QueueView> queues;
  std::vector<planner::PoolView> pools;
  std::vector<SimulatedJob> jobs;
  std::vector<ClusterChange> changes;
};

// Runs a cluster whose jobs the operator's planner resizes, event by event: arrivals, learners that
// start and leave, phases that end, faults. It carries a plan out as the operator does: new
// learners are gated until their GPUs are free, and a learner that leaves holds its GPUs until its
// pod has ended. The run ends with the last job. Equal input gives an equal record. `policy` and
// `workload` of the record are left to the caller.
RunRecord RunEvents(const RunInput& input, const RunOptions& options);

}  // namespace pliant::simulator
