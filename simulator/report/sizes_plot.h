#pragma once

#include <cstddef>
#include <string>

#include "simulator/report/report.h"

namespace pliant::simulator {

// GPU hours of a policy by the number of GPUs that the job held at the time, over all workloads
// together. All policies of a report have the same axes. Sizes above 4 are grouped by powers of
// two, such as 5-8 and 9-16.
std::string SizesPlot(const Report& report, std::size_t policy);

}  // namespace pliant::simulator
