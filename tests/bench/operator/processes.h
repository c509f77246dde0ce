#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace pliant::bench {

// How much processor time a process has used, in seconds; nothing if there is no such process.
std::optional<double> CpuSeconds(pid_t pid);
// The memory that it has; 0 if there is no such process.
double ResidentMiB(pid_t pid);

// The same of processes that cannot be seen from here, by name, as somebody who sees them keeps it
// in a file: "NAME SECONDS" a line. Empty if there is no such file.
std::map<std::string, double> ReadCpuSeconds(const std::string& path);

// By how much the values grow with their places, as the line says that fits best; 0 for fewer than
// two places.
double SlopeOf(const std::vector<std::pair<double, double>>& points);

}  // namespace pliant::bench
