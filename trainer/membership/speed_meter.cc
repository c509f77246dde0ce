#include "trainer/membership/speed_meter.h"

#include <algorithm>
#include <cmath>

namespace pliant {

void SpeedMeter::Begin(TimePoint now) {
  *this = {};
  began_ = now;
}

void SpeedMeter::OnBatch(std::uint64_t samples, TimePoint now) {
  if (!began_) return;
  if (batch_ && *batch_ != samples) Begin(now);
  batch_ = samples;
}

void SpeedMeter::OnReport(std::uint64_t step, double samples_per_second, double compute_seconds,
                          TimePoint now) {
  if (!began_) return;
  if (!first_step_) first_step_ = step;
  const bool settles = now - *began_ < kSettling || step < *first_step_ + kSettlingSteps;
  const bool is_new = !last_step_ || step > *last_step_;
  // A program may report anything.
  const bool makes_sense = std::isfinite(samples_per_second) && samples_per_second > 0 &&
                           std::isfinite(compute_seconds) && compute_seconds > 0;
  if (settles || !is_new || !makes_sense) return;
  last_step_ = step;
  reports_ = std::min(reports_ + 1, kMemory);
  mean_.samples_per_second += (samples_per_second - mean_.samples_per_second) / reports_;
  mean_.compute_seconds += (compute_seconds - mean_.compute_seconds) / reports_;
  mean_.seconds = ToSeconds(now - *began_ - kSettling);
}

std::optional<SteadySpeed> SpeedMeter::speed() const {
  return reports_ == 0 ? std::nullopt : std::optional(mean_);
}

}  // namespace pliant
