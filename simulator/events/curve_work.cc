#include "simulator/events/curve_work.h"

#include <algorithm>
#include <limits>

namespace pliant::simulator {

double CurveWork::Rate(const WorkState&, const Placement& placement) const {
  const int learners = Learners(placement);
  if (speeds_.empty()) return learners;
  // A speed of 0 would never end.
  return std::max(planner::SpeedWith(speeds_, learners), 1) / 1000.0;
}

double CurveWork::PhaseEnd(const WorkState&) const {
  return seconds_.value_or(std::numeric_limits<double>::infinity());
}

double CurveWork::SecondsAlone(const WorkState& state) const {
  return std::max(PhaseEnd(state) - state.progress, 0.0);
}

}  // namespace pliant::simulator
