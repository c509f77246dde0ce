#pragma once

#include <istream>
#include <ostream>

#include "simulator/options.h"

namespace pliant::simulator {

// Prints to `out` what the edits would change in a live cluster. Returns the exit code: 0, or
// kBadInput.
int AskWhatIf(const WhatIfOptions& options, std::istream& in, std::ostream& out,
              std::ostream& errors);

}  // namespace pliant::simulator
