#pragma once

#include <optional>
#include <vector>

#include "operator/speed/step_model.h"
#include "simulator/events/work.h"
#include "simulator/jsa/sample_rates.h"
#include "simulator/model/placement.h"
#include "simulator/model/profile.h"

namespace pliant::simulator {

// A training whose progress is its samples. It has phases of equal length: a phase begins with the
// fastest batch for the nodes that the job has then, and keeps it. If learners leave during a
// phase, the others accumulate.
class SamplesWork : public Work {
 public:
  // `profile` outlives it.
  SamplesWork(const Profile& profile, double samples, const SampleRules& rules, int phases);

  double Rate(const WorkState& state, const Placement& placement) const override;
  double PhaseEnd(const WorkState& state) const override;
  bool IsDone(const WorkState& state) const override { return state.phase >= phases_; }
  // All speeds are known, whatever was learned.
  WorkState Begin(WorkState state, const Placement& planned,
                  const LearnedSteps* learned) const override;
  // As if each size had its fastest batch at once.
  planner::SpeedCurve Speeds(const WorkState& state, const LearnedSteps* learned) const override;
  std::optional<speed::MeasuredStep> Measure(const WorkState&, const Placement&) const override {
    return std::nullopt;
  }
  double RateAlone(const WorkState& state) const override;
  double SecondsAlone(const WorkState& state) const override;
  int max_learners() const override { return rules_.max_gpus; }

 private:
  Placement Seen(const Placement& placement) const;  // by the rules

  const Profile& profile_;
  double samples_;
  SampleRules rules_;
  int phases_;
  std::vector<int> batches_;
  std::vector<double> rates_;  // samples a second, by learners from 1
};

}  // namespace pliant::simulator
