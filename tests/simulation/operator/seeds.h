#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pliant::operator_sim {

// Runs some random jobs under random faults (safety phase), then without them (liveness phase). Any
// error fails the running test. Returns a summary of what happened; it ends with the digest of all
// requests, answers and reports of the operator.
std::string RunSeed(std::uint64_t seed);

// Runs the same jobs each time. The process that makes the `write`-th write (writes to the lease
// included) dies before or after the write; nullopt: no process dies. Checks the same invariants.
// Returns the number of writes.
int RunDeathAtWrite(std::optional<int> write, bool after);
// The same for the plans that it sends to coordinators.
int RunDeathAtPlan(std::optional<int> plan, bool after);

// Runs a training and jobs whose programs fail at once and that have a higher priority: the
// training is not harmed.
void RunFailingNeighbours(std::uint64_t seed);

}  // namespace pliant::operator_sim
