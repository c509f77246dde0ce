#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "simulator/events/event_engine.h"
#include "simulator/events/profiled_work.h"
#include "simulator/inputs/scenario.h"
#include "simulator/model/profile.h"

namespace pliant::simulator {

// Rules that replace those of a scenario.
struct InputOptions {
  std::optional<planner::QueuePolicy> policy;  // of all queues; absent: their own
  std::optional<bool> favors_short_jobs;       // of all queues; absent: their own
  BatchRule batch = BatchRule::kFixed;
};

// The scenario as the event engine runs it. Another batch rule than kFixed raises the maximum of a
// job that its submitted batch limits to what the largest batch allows. `profiles` outlives the
// input. An error is a sentence with its remedy.
Result<RunInput> InputOf(const Profiles& profiles, const Scenario& scenario,
                         const InputOptions& options);

// GPUs of the largest node: learners on as few nodes as possible are on nodes of that size.
int LargestNode(const std::vector<planner::NodeView>& nodes);

}  // namespace pliant::simulator
