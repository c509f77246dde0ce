#pragma once

#include "operator/planner/assignment.h"
#include "operator/planner/plan.h"

namespace pliant::planner {

// Sorts the learners of one job into `keep`, `drop` and `create` of the decision.
void SortLearners(const Model& model, JobIndex index, const Assignment& placed, Decision& decision);

}  // namespace pliant::planner
