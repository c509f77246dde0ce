#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "simulator/inputs/scenario.h"
#include "simulator/inputs/yaml_value.h"
#include "simulator/model/profile.h"

namespace pliant::simulator {

// Learners that the batch allows, each with `gpus_per_learner` GPUs, and that the API allows; 0:
// not even one.
int MaxLearnersOf(const Profile& profile, int batch, int gpus_per_learner);

// Reads the list `jobs` of a scenario, in the order of the file. Each job fits the nodes, and is in
// one of the queues, or in the one that is built in.
Result<std::vector<ScenarioJob>> ReadJobs(std::string_view file, std::span<const YamlValue> items,
                                          const Profiles& profiles,
                                          const std::vector<planner::NodeView>& nodes,
                                          const std::vector<planner::QueueView>& queues);

}  // namespace pliant::simulator
