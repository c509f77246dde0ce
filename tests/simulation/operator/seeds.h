#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pliant::operator_sim {

// Some random jobs under random faults (safety phase), then without them (liveness phase). Whatever
// goes wrong fails the running test. Returns what happened, for the curious; its end is the digest
// of all that the operator exchanged and told.
std::string RunSeed(std::uint64_t seed);

// The same jobs each time, with the process killed that makes the `write`-th write, those to the
// lease included, before or after that is done; without one nobody dies. How many writes there were
// in all; the same promises.
int RunDeathAtWrite(std::optional<int> write, bool after);
// The same, of the plans that it sends to coordinators.
int RunDeathAtPlan(std::optional<int> plan, bool after);

// A training beside others whose programs fail at once, and that have the priority: it is none the
// worse for it.
void RunFailingNeighbours(std::uint64_t seed);

}  // namespace pliant::operator_sim
