#include "simulator/events/profiled_work.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "simulator/model/job_model.h"

namespace pliant::simulator {
namespace {

// The part of the noise scale up to which a larger batch wastes few samples.
constexpr double kMaxNoiseShare = 0.5;

// By speed relative to one learner, in thousandths.
int Permille(double rate, double alone) {
  const double permille = std::nearbyint(1000 * rate / alone);
  return static_cast<int>(std::clamp(permille, 0.0, static_cast<double>(planner::kMaxSpeed)));
}

PackedTimes::Option OptionOf(const Profile& profile, int batch, const Placement& placement) {
  const BatchSplit split = SplitBatch(profile, batch, Learners(placement));
  return {.candidate = batch,
          .batch = split.batch(),
          .step_seconds = StepSeconds(profile, placement, split)};
}

double RateOf(const Profile& profile, int epoch, const PackedTimes::Option& option) {
  const double scale = static_cast<double>(option.batch) / profile.min_batch();
  return Gain(profile.Gradients(epoch, option.batch), scale) / option.step_seconds;
}

}  // namespace

PackedTimes::PackedTimes(const Profile& profile, int gpus_per_node, int max_learners,
                         int gpus_per_learner)
    : gpus_per_node_(gpus_per_node), gpus_per_learner_(gpus_per_learner) {
  for (int learners = 1; learners <= max_learners; ++learners) {
    std::vector<Option>& options = options_.emplace_back();
    const Placement placement = PackedGpus(learners);
    for (std::int64_t batch = profile.min_batch(); batch <= profile.max_batch(); batch *= 2) {
      const int candidate = static_cast<int>(batch);
      if (Learners(placement) > profile.MaxLearners(candidate)) continue;
      options.push_back(OptionOf(profile, candidate, placement));
    }
  }
}

Placement PackedTimes::PackedGpus(int learners) const {
  return GpusOf(Packed(learners, gpus_per_node_ / gpus_per_learner_));
}

Placement PackedTimes::GpusOf(Placement learners) const {
  for (int& on_node : learners) on_node *= gpus_per_learner_;
  return learners;
}

ProfiledWork::ProfiledWork(const Profile& profile, std::shared_ptr<const PackedTimes> times,
                           int batch, BatchRule rule, int max_learners)
    : profile_(profile),
      times_(std::move(times)),
      batch_(batch),
      rule_(rule),
      max_learners_(max_learners) {
  if (rule == BatchRule::kFixed) {
    for (int learners = 1; learners <= max_learners; ++learners) {
      fixed_.push_back(OptionOf(profile, batch, times_->PackedGpus(learners)));
    }
  }
  alone_from_.assign(static_cast<std::size_t>(profile.epochs()) + 1, 0.0);
  for (int epoch = profile.epochs() - 1; epoch >= 0; --epoch) {
    const double before = epoch == 0 ? 0 : profile.ProgressBound(epoch - 1);
    const double progress = std::max(profile.ProgressBound(epoch) - before, 0.0);
    alone_from_[epoch] = alone_from_[epoch + 1] + progress / RateAlone({.phase = epoch});
  }
}

double ProfiledWork::Rate(const WorkState& state, const Placement& placement) const {
  return Goodput(profile_, state.phase, times_->GpusOf(placement), state.batch);
}

double ProfiledWork::PhaseEnd(const WorkState& state) const {
  return profile_.ProgressBound(state.phase);
}

bool ProfiledWork::IsDone(const WorkState& state) const { return state.phase >= profile_.epochs(); }

WorkState ProfiledWork::Begin(WorkState state, const Placement& placement) const {
  switch (rule_) {
    case BatchRule::kFixed:
      state.batch = batch_;
      break;
    case BatchRule::kFromState:
      state.batch = BatchOfNoise(state);
      break;
    case BatchRule::kRecorded:
      state.batch = FastestBatch(state.phase, placement);
      break;
  }
  return state;
}

// The noise of the epoch before decides.
int ProfiledWork::BatchOfNoise(const WorkState& state) const {
  if (state.batch == 0 || state.phase == 0) return profile_.min_batch();
  const GradientStats gradients = profile_.Gradients(state.phase - 1, state.batch);
  const double most = kMaxNoiseShare * NoiseScale(gradients) * profile_.min_batch();
  std::int64_t batch = profile_.min_batch();
  while (2 * batch <= profile_.max_batch() && static_cast<double>(2 * batch) <= most) batch *= 2;
  return static_cast<int>(batch);
}

int ProfiledWork::FastestBatch(int epoch, const Placement& placement) const {
  const Placement gpus = times_->GpusOf(placement);
  int fastest = profile_.min_batch();
  double best = 0;
  for (std::int64_t batch = profile_.min_batch(); batch <= profile_.max_batch(); batch *= 2) {
    const int candidate = static_cast<int>(batch);
    if (Learners(gpus) > profile_.MaxLearners(candidate)) continue;
    const double rate = Goodput(profile_, epoch, gpus, candidate);
    if (rate <= best) continue;
    best = rate;
    fastest = candidate;
  }
  return fastest;
}

double ProfiledWork::BestPackedRate(int epoch, int learners) const {
  double best = 0;
  for (const PackedTimes::Option& option : times_->With(learners)) {
    best = std::max(best, RateOf(profile_, epoch, option));
  }
  return best;
}

double ProfiledWork::PackedRate(const WorkState& state, int learners) const {
  switch (rule_) {
    case BatchRule::kFixed:
      return RateOf(profile_, state.phase, fixed_[static_cast<std::size_t>(learners) - 1]);
    case BatchRule::kRecorded:
      return BestPackedRate(state.phase, learners);
    case BatchRule::kFromState:
      break;
  }
  const int batch = state.batch == 0 ? profile_.min_batch() : state.batch;
  const auto& options = times_->With(learners);
  const auto same = std::ranges::find(options, batch, &PackedTimes::Option::candidate);
  // Some learners would have fewer samples than the smallest that was measured.
  return same == options.end() ? 0 : RateOf(profile_, state.phase, *same);
}

planner::SpeedCurve ProfiledWork::Speeds(const WorkState& state) const {
  planner::SpeedCurve speeds;
  const double alone = RateAlone(state);
  for (int learners = 1; learners <= max_learners_; ++learners) {
    speeds.push_back(Permille(PackedRate(state, learners), alone));
  }
  return speeds;
}

double ProfiledWork::RateAlone(const WorkState& state) const { return PackedRate(state, 1); }

double ProfiledWork::SecondsAlone(const WorkState& state) const {
  if (IsDone(state)) return 0;
  const double left = std::max(PhaseEnd(state) - state.progress, 0.0);
  return left / RateAlone(state) + alone_from_[static_cast<std::size_t>(state.phase) + 1];
}

}  // namespace pliant::simulator
