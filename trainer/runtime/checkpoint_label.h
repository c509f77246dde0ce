#pragma once

#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/position.h"

namespace pliant {

// The fields that must be equal in two jobs so that one can continue from the other's checkpoint.
JobIdentity JobOf(const DataSpec& spec, const BaseModel& base);

// The label of a state. Within an evaluation the position is the evaluation's
// beginning.
CheckpointLabel LabelOf(const Schedule& schedule, const Position& state, MembershipId membership,
                        std::string framework, const BaseModel& base);

// The same position in the ticks of this schedule, whose evaluations may come after other steps
// than those of the training that wrote it, or that has more steps. An evaluation of the last step
// is not repeated. Otherwise unchanged, also if it is not one of a training of these samples.
TrainingPosition PositionIn(const Schedule& schedule, TrainingPosition position);

}  // namespace pliant
