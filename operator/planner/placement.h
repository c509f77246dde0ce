#pragma once

#include "operator/planner/assignment.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Places the learners of a sharing: who runs stays if its job keeps so many, and new learners of a
// job stand together on few nodes.
Assignment Place(const Model& model, const Sharing& sharing);

}  // namespace pliant::planner
