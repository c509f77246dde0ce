#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "simulator/inputs/yaml_value.h"

namespace pliant::simulator {

// Reads the mapping `queues` of a scenario. Returns the queues by name.
Result<std::vector<planner::QueueView>> ReadQueues(std::string_view file, const YamlValue& value);

// The rules between fields that the API server checks. An error is a sentence with its remedy.
Status CheckQueue(const planner::QueueView& queue);

}  // namespace pliant::simulator
