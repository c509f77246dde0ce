#include "operator/planner/speed_curve.h"

#include <algorithm>

#include "operator/planner/quotient.h"

namespace pliant::planner {

std::optional<LargerSize> BestLargerSize(const SpeedCurve& curve, int from, int most) {
  const std::int64_t now = SpeedWith(curve, from);
  // Beyond the end no size is faster than the last one.
  const int last = std::min(most, static_cast<int>(curve.size()));
  std::optional<LargerSize> best;
  Quotient best_quotient;
  for (int to = from + 1; to <= last; ++to) {
    const std::int64_t then = SpeedWith(curve, to);
    if (then <= now) continue;
    const Quotient quotient{.numerator = then - now, .divisor = (then + now) * (to - from)};
    if (best && quotient <= best_quotient) continue;
    best = {.to = to, .gain = then - now, .sum = then + now};
    best_quotient = quotient;
  }
  return best;
}

int FastestSize(const SpeedCurve& curve, int from, int most) {
  int fastest = from;
  const int last = std::min(most, static_cast<int>(curve.size()));
  for (int size = from + 1; size <= last; ++size) {
    if (SpeedWith(curve, size) > SpeedWith(curve, fastest)) fastest = size;
  }
  return fastest;
}

bool IsLinear(const SpeedCurve& curve, int most) {
  for (int size = 2; size <= most; ++size) {
    if (SpeedWith(curve, size) != std::int64_t{size} * SpeedWith(curve, 1)) return false;
  }
  return true;
}

}  // namespace pliant::planner
