#pragma once

#include "simulator/inputs/scenario.h"
#include "simulator/model/profile.h"
#include "simulator/report/figures.h"

namespace pliant::simulator {

// Seconds that a job of the scenario takes alone, from its first step to its last, on this number
// of GPUs on as few nodes as possible, with its submitted batch and without a resize. It has all
// learners that the GPUs and its batch allow, and at least its minimum. Both outlive the result,
// which remembers what it computed.
IsolatedSeconds IsolatedSecondsOf(const Profiles& profiles, const Scenario& scenario);

}  // namespace pliant::simulator
