#pragma once

#include <optional>
#include <utility>

#include "simulator/events/work.h"

namespace pliant::simulator {

// Work of one phase whose speed depends on the number of learners alone: all that is known of a
// job of a live cluster.
class CurveWork : public Work {
 public:
  // `speeds`: empty if unknown, then the speed is in proportion to the learners. `seconds`: with
  // one learner; absent: it does not end.
  CurveWork(planner::SpeedCurve speeds, std::optional<double> seconds, int max_learners)
      : speeds_(std::move(speeds)), seconds_(seconds), max_learners_(max_learners) {}

  double Rate(const WorkState& state, const Placement& placement) const override;
  double PhaseEnd(const WorkState& state) const override;
  bool IsDone(const WorkState& state) const override { return state.phase > 0; }
  WorkState Begin(WorkState state, const Placement&, const LearnedSteps*) const override {
    return state;
  }
  planner::SpeedCurve Speeds(const WorkState&, const LearnedSteps*) const override {
    return speeds_;
  }
  std::optional<speed::MeasuredStep> Measure(const WorkState&, const Placement&) const override {
    return std::nullopt;
  }
  double RateAlone(const WorkState&) const override { return 1; }
  double SecondsAlone(const WorkState& state) const override;
  int max_learners() const override { return max_learners_; }

 private:
  planner::SpeedCurve speeds_;
  std::optional<double> seconds_;
  int max_learners_;
};

}  // namespace pliant::simulator
