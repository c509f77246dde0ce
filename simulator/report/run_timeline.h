#pragma once

#include <optional>
#include <string>

#include "simulator/model/run_record.h"

namespace pliant::simulator {

// The run as a timeline document (docs/timeline.md), whose times are those since the first
// submission. One node has all GPUs of the cluster, because a record does not say on which nodes
// jobs were. nullopt: the run has no span, or too many changes for a timeline's memory.
std::optional<std::string> TimelineOf(const RunRecord& run);

}  // namespace pliant::simulator
