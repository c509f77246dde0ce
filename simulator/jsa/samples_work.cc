#include "simulator/jsa/samples_work.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace pliant::simulator {

SamplesWork::SamplesWork(const Profile& profile, double samples, const SampleRules& rules,
                         int phases)
    : profile_(profile),
      samples_(samples),
      rules_(rules),
      phases_(phases),
      batches_(BatchesOf(profile, rules)),
      rates_(FastestRates(profile, batches_, rules)) {
  CHECK(phases > 0, "a training ends with its last phase");
}

Placement SamplesWork::Seen(const Placement& placement) const {
  return rules_.depends_on_nodes ? placement : Packed(Learners(placement), rules_.gpus_per_node);
}

double SamplesWork::Rate(const WorkState& state, const Placement& placement) const {
  return SamplesPerSecond(profile_, Seen(placement), state.batch);
}

double SamplesWork::PhaseEnd(const WorkState& state) const {
  return samples_ * (state.phase + 1) / phases_;
}

WorkState SamplesWork::Begin(WorkState state, const Placement& planned, const LearnedSteps*) const {
  const Placement placement = Seen(planned);
  double fastest = 0;
  for (const int batch : batches_) {
    if (!CanDivide(profile_, Learners(placement), batch, rules_)) continue;
    const double rate = SamplesPerSecond(profile_, placement, batch);
    if (rate <= fastest) continue;
    fastest = rate;
    state.batch = batch;
  }
  CHECK(state.batch > 0, "every size from 1 to the maximum has a batch");
  return state;
}

planner::SpeedCurve SamplesWork::Speeds(const WorkState&, const LearnedSteps*) const {
  planner::SpeedCurve speeds;
  for (const double rate : rates_) {
    speeds.push_back(static_cast<int>(std::nearbyint(1000 * rate / rates_.front())));
  }
  return speeds;
}

double SamplesWork::RateAlone(const WorkState&) const { return rates_.front(); }

double SamplesWork::SecondsAlone(const WorkState& state) const {
  return std::max(samples_ - state.progress, 0.0) / rates_.front();
}

}  // namespace pliant::simulator
