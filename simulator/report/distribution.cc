#include "simulator/report/distribution.h"

#include <algorithm>
#include <numeric>

namespace pliant::simulator {

std::optional<Distribution> DistributionOf(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t count = values.size();
  const auto at = [&](std::size_t percent) { return values[(count * percent + 99) / 100 - 1]; };
  return Distribution{
      .count = count,
      .mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count),
      .p50 = at(50),
      .p90 = at(90),
      .p99 = at(99),
      .max = values.back()};
}

}  // namespace pliant::simulator
