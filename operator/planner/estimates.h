#pragma once

#include <optional>
#include <span>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// When each waiting job will have its minimum, by job: if jobs that run end at `ends` (forecast.h),
// and those of `waiting` are admitted in this order. Nodes, weights and limits are not considered.
// Absent: the job does not wait, or too little is known. Empty: nothing is known of any.
std::vector<std::optional<WallTime>> EstimateStarts(const Model& model, const Sharing& sharing,
                                                    std::span<const std::optional<WallTime>> ends,
                                                    std::span<const JobIndex> waiting);

}  // namespace pliant::planner
