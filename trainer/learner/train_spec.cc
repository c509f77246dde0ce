#include "trainer/learner/train_spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace pliant::learner {

double ScaleOf(BatchScaling scaling, int doublings) {
  switch (scaling) {
    case BatchScaling::kNone:
      return 1;
    case BatchScaling::kLinear:
      return std::ldexp(1, doublings);
    case BatchScaling::kSqrt:
      return std::ldexp(doublings % 2 == 0 ? 1 : std::numbers::sqrt2, doublings / 2);
  }
  return 1;
}

double LearningRateAt(const TrainSpec& train, std::uint64_t step, std::uint64_t steps_per_epoch) {
  CHECK(steps_per_epoch > 0, "an epoch has steps");
  const LearningRateSchedule& schedule = train.schedule;
  const auto steps_of = [&](double epochs) {
    return std::round(epochs * static_cast<double>(steps_per_epoch));
  };
  const auto now = static_cast<double>(step);
  const double warmup = steps_of(schedule.warmup_epochs);
  if (now < warmup) return train.learning_rate * (now + 1) / warmup;
  switch (schedule.kind) {
    case LearningRateSchedule::Kind::kConstant:
      return train.learning_rate;
    case LearningRateSchedule::Kind::kStep: {
      const auto passed = std::ranges::count_if(
          schedule.at_epochs, [&](double epoch) { return now >= steps_of(epoch); });
      return train.learning_rate * std::pow(schedule.factor, static_cast<double>(passed));
    }
    case LearningRateSchedule::Kind::kCosine: {
      const double end = steps_of(static_cast<double>(train.epochs));
      const double done = end > warmup ? std::min((now - warmup) / (end - warmup), 1.0) : 1.0;
      const double share = (1 + std::cos(std::numbers::pi * done)) / 2;
      return train.learning_rate * (schedule.least + (1 - schedule.least) * share);
    }
  }
  return train.learning_rate;
}

}  // namespace pliant::learner
