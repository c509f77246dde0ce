#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace pliant::bench {

// Processor time that a process has used, in seconds; nullopt if there is no such process.
std::optional<double> CpuSeconds(pid_t pid);
// Resident memory; 0 if there is no such process.
double ResidentMiB(pid_t pid);

// Processor times of processes outside this container, by name. Another program keeps them in a
// file: a line "NAME SECONDS" for each. Empty if there is no such file.
std::map<std::string, double> ReadCpuSeconds(const std::string& path);

// The slope of the line that fits the points best; 0 for fewer than two points.
double SlopeOf(const std::vector<std::pair<double, double>>& points);

}  // namespace pliant::bench
