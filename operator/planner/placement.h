#pragma once

#include "operator/planner/assignment.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Places the learners of a sharing on nodes. Running learners stay where they are, as far as their
// job keeps that many. New learners of a job are packed into the narrowest domain (node, rack,
// zone) that takes them, where the job's other learners are if possible; or they are spread over
// domains.
Assignment Place(const Model& model, const Sharing& sharing);

}  // namespace pliant::planner
