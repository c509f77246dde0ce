#include "operator/speed/resize_cost.h"

#include <algorithm>
#include <cmath>

namespace pliant::speed {

int HoldPercent(const ResizeCost& cost, int learners, double remaining_seconds) {
  constexpr double kMax = 100;
  // So that a plan does not change with each second that passes.
  constexpr double kStep = 25;
  const double gaining = std::min(kHorizonSeconds, remaining_seconds) - cost.start_seconds;
  const double lost = cost.start_seconds + learners * cost.pause_seconds;
  if (!(gaining > lost)) return static_cast<int>(kMax);
  return static_cast<int>(kStep * std::round(kMax / kStep * lost / gaining));
}

}  // namespace pliant::speed
