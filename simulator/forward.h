#pragma once

#include <string>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "operator/replay/debug_snapshot.h"
#include "simulator/events/event_engine.h"
#include "simulator/inputs/what_if.h"

namespace pliant::simulator {

// The jobs of a live cluster with the learners that they have, from the time of the snapshot on.
// How much work is left is known of jobs that have `alone_seconds`; others never end. Without
// speeds a job trains in proportion to its learners. Finished jobs are left out, and so are budgets
// and pending pods, which a run does not have.
RunInput PresentInput(const planner::ClusterSnapshot& snapshot);

// For people: when jobs complete, in seconds from now, without and with the edits. kInvalid if the
// rest of no job is known.
Result<std::string> Forward(const replay::DebugSnapshot& debug,
                            const planner::ClusterSnapshot& edited, WhatIfJobs jobs);

}  // namespace pliant::simulator
