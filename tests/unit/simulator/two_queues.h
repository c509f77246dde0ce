#pragma once

#include <string>

#include "operator/replay/debug_snapshot.h"
#include "tests/unit/planner/builders.h"

namespace pliant::simulator {

// Queues "batch" and "research" of equal weight share 16 GPUs: jobs "nightly" and "paper" have 8
// each, of at most 16. A job `suspended` of "research" has none.
inline replay::DebugSnapshot TwoQueuesShare(const std::string& suspended) {
  using planner::GpuNode;
  using planner::JobOf;
  replay::DebugSnapshot debug{.snapshot = {.now = planner::kStart + planner::Seconds{3600},
                                           .nodes = {GpuNode("gpu-1", 8), GpuNode("gpu-2", 8)},
                                           .queues = {{.name = "batch"}, {.name = "research"}}}};
  debug.snapshot.jobs = {JobOf("nightly", 1, 16).Queue("batch").Has(8, "gpu-1").view,
                         JobOf("paper", 1, 16).Queue("research").Has(8, "gpu-2").view,
                         JobOf(suspended, 1, 1).Queue("research").Suspended().view};
  return debug;
}

}  // namespace pliant::simulator
