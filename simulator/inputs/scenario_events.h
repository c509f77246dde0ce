#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "simulator/inputs/scenario.h"
#include "simulator/inputs/yaml_value.h"

namespace pliant::simulator {

// Reads the list `events` of a scenario, in the order of the file.
Result<std::vector<ScenarioEvent>> ReadEvents(std::string_view file,
                                              std::span<const YamlValue> items,
                                              const std::vector<planner::NodeView>& nodes,
                                              const std::vector<ScenarioJob>& jobs);

}  // namespace pliant::simulator
