#pragma once

#include <string>

#include "simulator/report/report.h"

namespace pliant::simulator {

inline constexpr int kReportVersion = 1;

// Everything in a report, and the records of its runs: an object with `version`, on one line. An
// absent figure is null. Numbers are as exact as a double, shares from 0 to 1.
std::string WriteJson(const Report& report);

}  // namespace pliant::simulator
