#pragma once

#include <yaml-cpp/yaml.h>

#include "tests/scenario/planner/fields.h"
#include "tests/scenario/planner/timed_world.h"

// Makes the cluster of a scenario, and everything happen to it that a step says. README.md has the
// keys.
namespace pliant::planner {

// The cluster at the start, and its jobs. Takes their keys from `scenario`.
void SetUp(Fields& scenario, TimedWorld& timed);

// Lets everything happen that the step says, in the order of README.md. Does not plan after that.
void LetHappen(Fields& step, TimedWorld& timed);

}  // namespace pliant::planner
