#pragma once

#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/schedule.h"

namespace pliant {

// What must be equal of two jobs, that one can go on from the other's checkpoint.
JobIdentity JobOf(const DataSpec& spec);

// Of a state after `applied` ticks. Within an evaluation the position is the evaluation's
// beginning.
CheckpointLabel LabelOf(const Schedule& schedule, Tick applied, MembershipId membership,
                        std::string framework);

}  // namespace pliant
