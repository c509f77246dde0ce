#pragma once

#include <string>

#include "simulator/report/report.h"

namespace pliant::simulator {

// The part of the jobs of each policy that completed within a time, over all workloads together,
// with a logarithmic time axis. Jobs that did not complete keep a curve below 100 %. Times that
// fall on the same pixel are drawn as one.
std::string CdfPlot(const Report& report);

// The same as a picture on its own, a whole SVG file.
std::string CdfPicture(const Report& report);

}  // namespace pliant::simulator
