#pragma once

#include <cstdint>
#include <string>

namespace pliant::sim {

// One random job under random faults (safety phase), then without them (liveness phase). Whatever
// goes wrong fails the running test. Returns what happened, for the curious.
std::string RunSeed(std::uint64_t seed);

}  // namespace pliant::sim
