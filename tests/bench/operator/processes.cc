#include "tests/bench/operator/processes.h"

#include <fstream>
#include <iterator>
#include <sstream>

#include <unistd.h>

#include "base/format.h"

namespace pliant::bench {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::optional<double> CpuSeconds(pid_t pid) {
  const std::string stat = ReadFile(Format("/proc/{}/stat", pid));
  // The second field is the program's name in parentheses, which may hold anything.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ResidentMiB(pid_t pid) {
  std::ifstream status(Format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

std::map<std::string, double> ReadCpuSeconds(const std::string& path) {
  std::map<std::string, double> times;
  std::ifstream file(path);
  std::string name;
  for (double seconds = 0; file >> name >> seconds;) times[name] = seconds;
  return times;
}

double SlopeOf(const std::vector<std::pair<double, double>>& points) {
  double sum_x = 0;
  double sum_y = 0;
  for (const auto& [x, y] : points) {
    sum_x += x;
    sum_y += y;
  }
  const auto count = static_cast<double>(points.size());
  double covariance = 0;
  double variance = 0;
  for (const auto& [x, y] : points) {
    covariance += (x - sum_x / count) * (y - sum_y / count);
    variance += (x - sum_x / count) * (x - sum_x / count);
  }
  return variance > 0 ? covariance / variance : 0;
}

}  // namespace pliant::bench
