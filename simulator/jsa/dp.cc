#include "simulator/jsa/dp.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/check.h"

namespace pliant::simulator {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

}  // namespace

std::optional<std::vector<int>> MaxTotalValue(std::span<const SizeValues> jobs, int total) {
  CHECK(total >= 0, "a cluster has no negative number of GPUs");
  const auto columns = static_cast<std::size_t>(total) + 1;
  std::vector<double> best(columns, kImpossible);  // by GPUs, exactly as many
  best[0] = 0;
  std::vector<int> chosen(jobs.size() * columns, 0);  // by job, then by GPUs of the jobs to here
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const SizeValues& sizes = jobs[job];
    CHECK(sizes.min_size >= 0, "a size is not negative");
    std::vector<double> with_job(columns, kImpossible);
    for (std::size_t gpus = 0; gpus < columns; ++gpus) {
      for (std::size_t index = 0; index < sizes.values.size(); ++index) {
        const std::size_t size = static_cast<std::size_t>(sizes.min_size) + index;
        if (size > gpus) break;
        const double value = sizes.values[index] + best[gpus - size];
        if (value <= with_job[gpus]) continue;  // the smallest size of equal ones stays
        with_job[gpus] = value;
        chosen[job * columns + gpus] = static_cast<int>(size);
      }
    }
    best = std::move(with_job);
  }

  const auto top = std::ranges::max_element(best);  // the first: the fewest GPUs
  if (*top == kImpossible) return std::nullopt;
  auto gpus = static_cast<std::size_t>(top - best.begin());
  std::vector<int> sizes(jobs.size(), 0);
  for (std::size_t job = jobs.size(); job-- > 0;) {
    sizes[job] = chosen[job * columns + gpus];
    gpus -= static_cast<std::size_t>(sizes[job]);
  }
  return sizes;
}

}  // namespace pliant::simulator
