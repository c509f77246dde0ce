#pragma once

#include <optional>

#include "operator/planner/model.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// The minimum that a job with a place has from now on; nullopt: it has no place. That of a job that
// had one before rises, up to its minLearners, only within the part of the pool that it is entitled
// to without the raise: otherwise an edit would take from others what admission would not have
// given. `fair`: its share without cooldowns.
std::optional<LearnerCount> MinimumAfter(const Job& job, const Share& fair, const Share& given);

}  // namespace pliant::planner
