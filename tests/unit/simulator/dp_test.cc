#include "simulator/jsa/dp.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace pliant::simulator {
namespace {

constexpr double kNotValid = -std::numeric_limits<double>::infinity();
using Sizes = std::optional<std::vector<int>>;

// Whether `ours` comes before `theirs` of the same value: fewer GPUs, then fewer for later jobs.
bool IsFirst(const std::vector<int>& ours, const std::vector<int>& theirs) {
  const int our_gpus = std::accumulate(ours.begin(), ours.end(), 0);
  const int their_gpus = std::accumulate(theirs.begin(), theirs.end(), 0);
  if (our_gpus != their_gpus) return our_gpus < their_gpus;
  return std::lexicographical_compare(ours.rbegin(), ours.rend(), theirs.rbegin(), theirs.rend());
}

// Tries all sizes of the jobs from `sizes->size()` on.
void Try(const std::vector<SizeValues>& jobs, int left, double value, std::vector<int>& sizes,
         double& best_value, Sizes& best) {
  if (value == kNotValid) return;
  if (sizes.size() == jobs.size()) {
    if (best && (value < best_value || (value == best_value && !IsFirst(sizes, *best)))) return;
    best_value = value;
    best = sizes;
    return;
  }
  const SizeValues& job = jobs[sizes.size()];
  for (std::size_t index = 0; index < job.values.size(); ++index) {
    const int size = job.min_size + static_cast<int>(index);
    if (size > left) break;
    sizes.push_back(size);
    Try(jobs, left - size, value + job.values[index], sizes, best_value, best);
    sizes.pop_back();
  }
}

Sizes ByTryingAll(const std::vector<SizeValues>& jobs, int total) {
  Sizes best;
  double best_value = 0;
  std::vector<int> sizes;
  Try(jobs, total, 0, sizes, best_value, best);
  return best;
}

TEST(MaxTotalValue, ReturnsWhatTryingAllSizesReturns) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto draw = [&](int count) { return static_cast<int>(random() % count); };
    std::vector<SizeValues> jobs(static_cast<std::size_t>(draw(5)));
    for (SizeValues& job : jobs) {
      job.min_size = draw(4);
      job.values.resize(static_cast<std::size_t>(draw(5)));
      // Small whole numbers: many sums are equal, and exact.
      for (double& value : job.values) value = draw(8) == 0 ? kNotValid : draw(6);
    }
    const int total = draw(13);
    EXPECT_EQ(MaxTotalValue(jobs, total), ByTryingAll(jobs, total));
  }
}

TEST(MaxTotalValue, NoJobsGetNothing) {
  EXPECT_EQ(MaxTotalValue({}, 8), std::vector<int>());
  EXPECT_EQ(MaxTotalValue({}, 0), std::vector<int>());
}

TEST(MaxTotalValue, WithoutGpusOnlyJobsThatMayWaitFit) {
  const std::vector<SizeValues> may_wait = {{.min_size = 0, .values = {0, 1}}};
  EXPECT_EQ(MaxTotalValue(may_wait, 0), std::vector<int>({0}));
  const std::vector<SizeValues> may_not = {{.min_size = 1, .values = {1}}};
  EXPECT_EQ(MaxTotalValue(may_not, 0), std::nullopt);
}

TEST(MaxTotalValue, SmallestSizesThatExceedTheTotalDoNotFit) {
  const std::vector<SizeValues> jobs = {{.min_size = 3, .values = {1, 2}},
                                        {.min_size = 2, .values = {5}}};
  EXPECT_EQ(MaxTotalValue(jobs, 4), std::nullopt);
  EXPECT_EQ(MaxTotalValue(jobs, 5), std::vector<int>({3, 2}));
  EXPECT_EQ(MaxTotalValue(jobs, 6), std::vector<int>({4, 2}));
}

TEST(MaxTotalValue, AJobWithoutAValidSizeDoesNotFit) {
  const std::vector<SizeValues> none = {{.min_size = 1, .values = {}}};
  EXPECT_EQ(MaxTotalValue(none, 4), std::nullopt);
  const std::vector<SizeValues> invalid = {{.min_size = 1, .values = {kNotValid, kNotValid}}};
  EXPECT_EQ(MaxTotalValue(invalid, 4), std::nullopt);
}

TEST(MaxTotalValue, AnEarlierJobComesFirst) {
  const SizeValues job = {.min_size = 0, .values = {0, 1, 2}};
  EXPECT_EQ(MaxTotalValue(std::vector{job, job, job}, 3), std::vector<int>({2, 1, 0}));
}

TEST(MaxTotalValue, GpusThatAddNothingStayFree) {
  const SizeValues job = {.min_size = 1, .values = {1, 1, 3, 3}};
  EXPECT_EQ(MaxTotalValue(std::vector{job, job}, 5), std::vector<int>({3, 1}));
}

// A greedy choice of the highest gain a GPU would give the second job its second GPU.
TEST(MaxTotalValue, LooksBeyondASizeThatIsNotFaster) {
  const std::vector<SizeValues> jobs = {{.min_size = 1, .values = {1, 1, 3}},
                                        {.min_size = 1, .values = {1, 1.9, 2}}};
  EXPECT_EQ(MaxTotalValue(jobs, 4), std::vector<int>({3, 1}));
}

}  // namespace
}  // namespace pliant::simulator
