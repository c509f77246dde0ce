#pragma once

#include "operator/planner/assignment.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Places the learners of a sharing on nodes. Running learners stay where they are, as far as their
// job keeps that many; new learners of a job are packed on few nodes.
Assignment Place(const Model& model, const Sharing& sharing);

}  // namespace pliant::planner
