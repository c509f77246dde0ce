#pragma once

#include <optional>
#include <span>
#include <vector>

namespace pliant::simulator {

// The sizes that a job may have, and the value of each. The job must have one of them.
struct SizeValues {
  int min_size = 0;  // >= 0, in GPUs; 0: the job may wait
  // The values of min_size, min_size + 1, ... GPUs, not NaN. -infinity: not a valid size.
  std::vector<double> values;
};

// The sizes of all jobs, of at most `total` GPUs together, whose values have the largest sum. Equal
// sums: the fewest GPUs in total; then the fewest for the last job, for the one before it, and so
// on, so that an earlier job comes first. nullopt if the jobs do not fit.
//
// The dynamic program of arXiv:2006.13878: P[j][k], the largest sum of the first j jobs with k
// GPUs, is the maximum over g of value_j(g) + P[j - 1][k - g]. Time: jobs · total · sizes.
std::optional<std::vector<int>> MaxTotalValue(std::span<const SizeValues> jobs, int total);

}  // namespace pliant::simulator
