#include "trainer/data/batch_rule.h"

#include <algorithm>

#include "base/format.h"

namespace pliant {
namespace {

// The part of the noise scale up to which the batch grows.
constexpr double kGrowTo = 0.5;
// A batch that is larger than this part shrinks. More than kGrowTo, so that a scale between both
// changes nothing.
constexpr double kShrinkFrom = 1;
// Without a positive square, a window is full enough from this weight on to mean that the scale is
// large. (A short window often has none.)
constexpr double kStepsForLarge = 100;

}  // namespace

Result<int> MaxDoublings(const DataSpec& spec, std::uint64_t max_batch_size) {
  const std::uint64_t twice = 2 * spec.global_batch_size;
  if (max_batch_size < twice)
    return Invalid(
        Format("maxBatchSize: {} is less than twice globalBatchSize ({}), so the batch "
               "could never grow: use at least {}, or the mode Constant",
               max_batch_size, spec.global_batch_size, twice));
  if (spec.logical_shards < 2)
    return Invalid(
        "logicalShards: the noise scale is measured between shards, so with 1 the batch could "
        "never grow: use at least 2, or the mode Constant");
  if (spec.train_samples < twice)
    return Invalid(
        Format("globalBatchSize: twice {} is more than the {} training samples, so the "
               "batch could never grow: use at most {}, or the mode Constant",
               spec.global_batch_size, spec.train_samples, spec.train_samples / 2));
  if (spec.logical_shards > kMaxLogicalShards / 2)
    return Invalid(
        Format("logicalShards: a doubled batch has twice {} shards, and at most {} are "
               "possible: use fewer, or the mode Constant",
               spec.logical_shards, kMaxLogicalShards));
  int doublings = 0;
  const std::uint64_t most = std::min(max_batch_size, spec.train_samples);
  while (spec.global_batch_size <= most >> (doublings + 1) &&
         spec.logical_shards <= kMaxLogicalShards >> (doublings + 1)) {
    ++doublings;
  }
  return doublings;
}

int NextDoublings(const DataSpec& spec, int now, const NoiseWindow& noise) {
  const double batch = static_cast<double>(spec.global_batch_size << now);
  const std::optional<double> scale = noise.scale();
  const bool large = !scale && noise.steps >= kStepsForLarge && noise.square <= 0;
  if (large || (scale && 2 * batch <= kGrowTo * *scale))
    return std::min(now + 1, spec.max_doublings);
  if (scale && batch > kShrinkFrom * *scale) return std::max(now - 1, 0);
  return now;
}

void Append(BatchSegments& segments, const DataSpec& spec, std::uint64_t epoch, int doublings) {
  const int now = segments.empty() ? 0 : segments.back().doublings;
  const int next = std::max(std::clamp(doublings, now - 1, now + 1), 0);
  if (next == now || next > spec.max_doublings || segments.size() >= kMaxBatchSegments) return;
  segments.push_back({.epoch = epoch, .doublings = next});
}

}  // namespace pliant
