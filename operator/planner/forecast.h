#pragma once

#include <optional>
#include <span>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// When each job that has learners will end, by job, if nothing comes: a job that ends leaves its
// GPUs first to jobs that wait, then to those of its queue that are faster with them. Nodes and
// limits are not considered. After 256 such steps, fewer in a large queue, jobs keep their sizes.
// Absent: the job has no learners, or too little is known. `waiting`: jobs that wait, in turn.
std::vector<std::optional<WallTime>> ForecastEnds(const Model& model, const Sharing& sharing,
                                                  std::span<const JobIndex> waiting);

// Whether the end of some job may be known.
bool MayKnowEnds(const Model& model);

}  // namespace pliant::planner
