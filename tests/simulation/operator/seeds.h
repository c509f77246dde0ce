#pragma once

#include <cstdint>
#include <string>

namespace pliant::operator_sim {

// Some random jobs under random faults (safety phase), then without them (liveness phase). Whatever
// goes wrong fails the running test. Returns what happened, for the curious.
std::string RunSeed(std::uint64_t seed);

// The same jobs each time, with the leader killed at its `write`-th write, before or after that is
// done. How many writes there were in all; the same promises.
int RunDeathAtWrite(int write, bool after);
// The same, of the plans that it sends to coordinators.
int RunDeathAtPlan(int plan, bool after);

}  // namespace pliant::operator_sim
