#include "trainer/runtime/bucket_tuner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/collective/reduction.h"

namespace pliant {
namespace {

// The first ticks with a choice make its buffers.
constexpr std::size_t kWarmUpTicks = 1;
constexpr std::size_t kTicksOfChoice = 5;
// Of the time of the first choice: what another one has to save.
constexpr double kGainLeast = 0.02;

Duration Median(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

std::vector<BucketSizes> DefaultBucketSizes() {
  constexpr std::size_t kKi = std::size_t{1} << 10;
  return {Reduction::kBucketSizes,
          {.first = 64 * kKi, .rest = 512 * kKi},
          {.first = 256 * kKi, .rest = 2048 * kKi},
          {.first = 256 * kKi, .rest = 8192 * kKi}};
}

std::vector<BucketSizes> DistinctBucketSizes(std::size_t elements, std::vector<BucketSizes> sizes) {
  std::vector<BucketSizes> distinct;
  for (const BucketSizes& candidate : sizes) {
    const bool known = std::ranges::any_of(distinct, [&](const BucketSizes& other) {
      return BucketLayout(elements, other) == BucketLayout(elements, candidate);
    });
    if (!known) distinct.push_back(candidate);
  }
  return distinct;
}

BucketTuner::BucketTuner(std::size_t choices) : seen_(choices), times_(choices) {
  CHECK(choices > 0, "something to choose");
  for (std::vector<Duration>& times : times_) times.reserve(kTicksOfChoice);
  if (choices == 1) chosen_ = 0;
}

std::size_t BucketTuner::Next() {
  if (chosen_) return *chosen_;
  next_ = (next_ + 1) % times_.size();
  return next_;
}

std::optional<std::size_t> BucketTuner::OnTick(std::size_t choice, Duration took, bool whole) {
  if (chosen_ || !whole) return std::nullopt;
  if (++seen_[choice] <= kWarmUpTicks) return std::nullopt;
  if (times_[choice].size() < kTicksOfChoice) times_[choice].push_back(took);
  const bool enough = std::ranges::all_of(
      times_, [](const std::vector<Duration>& times) { return times.size() == kTicksOfChoice; });
  if (!enough) return std::nullopt;
  chosen_ = Choose();
  return chosen_;
}

std::size_t BucketTuner::Choose() const {
  std::vector<Duration> medians;
  for (const std::vector<Duration>& times : times_) medians.push_back(Median(times));
  const auto best = std::ranges::min_element(medians);
  const double gain = ToSeconds(medians.front() - *best);
  if (gain < kGainLeast * ToSeconds(medians.front())) return 0;
  return static_cast<std::size_t>(best - medians.begin());
}

}  // namespace pliant
