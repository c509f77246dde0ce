#include "operator/speed/step_table.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace pliant::speed {
namespace {

// A new measurement counts at least 1 / kMemory in the mean of its size.
constexpr int kMemory = 8;

auto SizeOf(const MeasuredStep& step) {
  return std::tuple(step.nodes, step.learners, step.work.parts, step.work.samples);
}

bool Differs(double now, double counts) {
  return std::abs(now - counts) * 100 >= StepTable::kNewsPercent * counts;
}

}  // namespace

bool StepTable::Add(const MeasuredStep& step) {
  ++measurements_;
  const auto at = std::ranges::lower_bound(steps_, SizeOf(step), {}, SizeOf);
  const auto index = at - steps_.begin();
  if (at == steps_.end() || SizeOf(*at) != SizeOf(step)) {
    steps_.insert(at, step);
    means_.insert(means_.begin() + index, Mean{.step_seconds = step.step_seconds,
                                               .compute_seconds = step.compute_seconds,
                                               .count = 1,
                                               .last = measurements_});
    if (steps_.size() > kMaxSizes) DropOldest();
    return true;
  }
  Mean& mean = means_[static_cast<std::size_t>(index)];
  mean.count = std::min(mean.count + 1, kMemory);
  mean.step_seconds += (step.step_seconds - mean.step_seconds) / mean.count;
  mean.compute_seconds += (step.compute_seconds - mean.compute_seconds) / mean.count;
  mean.last = measurements_;
  if (!Differs(mean.step_seconds, at->step_seconds) &&
      !Differs(mean.compute_seconds, at->compute_seconds)) {
    return false;
  }
  at->step_seconds = mean.step_seconds;
  at->compute_seconds = mean.compute_seconds;
  return true;
}

void StepTable::DropOldest() {
  const auto oldest = std::ranges::min_element(means_, {}, &Mean::last);
  steps_.erase(steps_.begin() + (oldest - means_.begin()));
  means_.erase(oldest);
}

}  // namespace pliant::speed
