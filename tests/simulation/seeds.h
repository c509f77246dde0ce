#pragma once

#include <cstdint>
#include <string>

namespace pliant::sim {

// Runs one random job under random faults (safety phase), then without them (liveness phase). Any
// error fails the running test. Returns a summary of what happened.
std::string RunSeed(std::uint64_t seed);

}  // namespace pliant::sim
