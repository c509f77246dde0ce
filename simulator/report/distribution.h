#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace pliant::simulator {

// Values of jobs. A percentile is the nearest rank: the smallest value that is at least as large as
// this percentage of the values. So it is always one of them.
struct Distribution {
  std::size_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
  bool operator==(const Distribution&) const = default;
};

// Absent if there are no values.
std::optional<Distribution> DistributionOf(std::vector<double> values);

}  // namespace pliant::simulator
