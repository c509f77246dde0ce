#pragma once

#include <optional>
#include <vector>

#include "operator/planner/model.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// When each waiting job will have its minimum, by job: if jobs that run end when they are expected
// to, and jobs that wait are admitted in turn. Nodes, weights and limits are not considered.
// Absent: the job does not wait, or too little is known. Empty: nothing is
// known of any.
std::vector<std::optional<WallTime>> EstimateStarts(const Model& model, const Sharing& sharing);

// When a job that runs will end at its present speed; absent: unknown, or it does not run.
std::optional<WallTime> EstimateEnd(const Model& model, JobIndex job);

}  // namespace pliant::planner
