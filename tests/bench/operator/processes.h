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

// "etcd=17": a process that another program has started, by the name of its program.
struct NamedProcess {
  std::string name;
  pid_t pid = 0;
};
// Nothing if it is no such text, or if this process cannot see that one: it runs in a container of
// its own.
std::optional<NamedProcess> FindProcess(const std::string& text);

// By how much the values grow with their places, as the line says that fits best; 0 for fewer than
// two places.
double SlopeOf(const std::vector<std::pair<double, double>>& points);

}  // namespace pliant::bench
