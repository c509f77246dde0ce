#pragma once

#include <ostream>

#include "simulator/options.h"

namespace pliant::simulator {

inline constexpr int kNotWritten = 1;

// Runs the workloads under the policies, one after the other. Prints the report to `out`, and
// writes files. `progress`: null, or where each run is announced. Returns the exit code: 0,
// kBadInput, or kNotWritten if a file cannot be written. Equal files and options give equal bytes.
int Simulate(const SimulateOptions& options, std::ostream& out, std::ostream& errors,
             std::ostream* progress);

}  // namespace pliant::simulator
