#pragma once

#include <string>

#include "simulator/report/report.h"

namespace pliant::simulator {

// For a terminal of 100 columns: the figures of each policy, those of each workload, and pairwise
// comparisons with the first policy.
std::string WriteText(const Report& report);

}  // namespace pliant::simulator
