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

// The longest segment of an epoch, in iterations of the smallest batch.
constexpr double kSegment = 500;

// Sizes up to this many times the largest one that was tried are offered.
constexpr int kMaxStepBeyond = 2;

speed::StepWork WorkOf(const BatchSplit& split) {
  const double parts = split.accumulations + 1;
  return {.parts = parts, .samples = parts * split.atomic};
}

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
  AddSegments();
}

void ProfiledWork::AddSegments() {
  double begin = 0;
  for (int epoch = 0; epoch < profile_.epochs(); ++epoch) {
    const double end = profile_.ProgressBound(epoch);
    const int parts = rule_ == BatchRule::kFixed
                          ? 1
                          : std::max(static_cast<int>(std::ceil((end - begin) / kSegment)), 1);
    for (int part = 1; part <= parts; ++part) {
      segments_.push_back({.epoch = epoch, .end = begin + (end - begin) * part / parts});
    }
    begin = end;
  }
  for (std::size_t index = segments_.size() - 1; index > 0; --index) {
    const double progress = std::max(segments_[index].end - segments_[index - 1].end, 0.0);
    const double seconds = progress / RateAlone({.phase = static_cast<int>(index)});
    segments_[index - 1].alone_after = segments_[index].alone_after + seconds;
  }
}

int ProfiledWork::EpochOf(const WorkState& state) const {
  const auto last = static_cast<int>(segments_.size()) - 1;
  return segments_[static_cast<std::size_t>(std::min(state.phase, last))].epoch;
}

double ProfiledWork::Rate(const WorkState& state, const Placement& placement) const {
  return Goodput(profile_, EpochOf(state), times_->GpusOf(placement), state.batch);
}

double ProfiledWork::PhaseEnd(const WorkState& state) const {
  return segments_[static_cast<std::size_t>(state.phase)].end;
}

WorkState ProfiledWork::Begin(WorkState state, const Placement& planned,
                              const LearnedSteps* learned) const {
  switch (rule_) {
    case BatchRule::kFixed:
      state.batch = batch_;
      break;
    case BatchRule::kFromState:
      state.batch = BatchOfNoise(state);
      break;
    case BatchRule::kRecorded:
      if (learned == nullptr) {
        state.batch = FastestBatch(EpochOf(state), planned);
      } else if (learned->model) {
        state.batch = FastestLearnedBatch(state, *learned->model, planned);
      } else {
        state.batch = profile_.min_batch();
      }
      break;
  }
  return state;
}

// The noise of the segment before decides.
int ProfiledWork::BatchOfNoise(const WorkState& state) const {
  if (state.batch == 0 || state.phase == 0) return profile_.min_batch();
  const GradientStats gradients = profile_.Gradients(SeenEpochOf(state), state.batch);
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
      return RateOf(profile_, EpochOf(state), fixed_[static_cast<std::size_t>(learners) - 1]);
    case BatchRule::kRecorded:
      return BestPackedRate(EpochOf(state), learners);
    case BatchRule::kFromState:
      break;
  }
  const int batch = state.batch == 0 ? profile_.min_batch() : state.batch;
  const auto& options = times_->With(learners);
  const auto same = std::ranges::find(options, batch, &PackedTimes::Option::candidate);
  // Some learners would have fewer samples than the smallest that was measured.
  return same == options.end() ? 0 : RateOf(profile_, EpochOf(state), *same);
}

planner::SpeedCurve ProfiledWork::Speeds(const WorkState& state,
                                         const LearnedSteps* learned) const {
  if (learned != nullptr) {
    return learned->model ? LearnedSpeeds(state, *learned->model) : planner::SpeedCurve{};
  }
  planner::SpeedCurve speeds;
  const double alone = RateAlone(state);
  for (int learners = 1; learners <= max_learners_; ++learners) {
    speeds.push_back(Permille(PackedRate(state, learners), alone));
  }
  return speeds;
}

double ProfiledWork::LearnedRate(const WorkState& state, const speed::StepModel& model,
                                 const Placement& gpus, int batch) const {
  const BatchSplit split = SplitBatch(profile_, batch, Learners(gpus));
  const double seconds =
      model.Seconds(split.learners, static_cast<int>(gpus.size()), WorkOf(split));
  const double scale = static_cast<double>(split.batch()) / profile_.min_batch();
  return Gain(profile_.Gradients(SeenEpochOf(state), split.batch()), scale) / seconds;
}

int ProfiledWork::FastestLearnedBatch(const WorkState& state, const speed::StepModel& model,
                                      const Placement& placement) const {
  const int learners = Learners(placement);
  const Placement gpus = times_->GpusOf(placement);
  int fastest = profile_.min_batch();
  double best = 0;
  for (const PackedTimes::Option& option : times_->With(std::min(learners, max_learners_))) {
    const double rate = LearnedRate(state, model, gpus, option.candidate);
    if (rate <= best) continue;
    best = rate;
    fastest = option.candidate;
  }
  return fastest;
}

planner::SpeedCurve ProfiledWork::LearnedSpeeds(const WorkState& state,
                                                const speed::StepModel& model) const {
  planner::SpeedCurve speeds;
  double alone = 0;
  const int most_gpus = kMaxStepBeyond * model.most_learners();
  const int most = std::clamp(most_gpus / times_->gpus_per_learner(), 1, max_learners_);
  for (int learners = 1; learners <= most; ++learners) {
    const Placement gpus = times_->PackedGpus(learners);
    double rate = 0;
    if (rule_ == BatchRule::kRecorded) {
      for (const PackedTimes::Option& option : times_->With(learners)) {
        rate = std::max(rate, LearnedRate(state, model, gpus, option.candidate));
      }
    } else {
      const int batch =
          rule_ == BatchRule::kFixed ? batch_ : std::max(state.batch, profile_.min_batch());
      if (Learners(gpus) <= profile_.MaxLearners(batch)) {
        rate = LearnedRate(state, model, gpus, batch);
      }
    }
    if (learners == 1) alone = rate;
    speeds.push_back(Permille(rate, alone));
  }
  return speeds;
}

std::optional<speed::MeasuredStep> ProfiledWork::Measure(const WorkState& state,
                                                         const Placement& placement) const {
  const Placement gpus = times_->GpusOf(placement);
  const BatchSplit split = SplitBatch(profile_, state.batch, Learners(gpus));
  const StepTime part = profile_.step_times().At(gpus, split.atomic);
  return speed::MeasuredStep{.learners = split.learners,
                             .nodes = static_cast<int>(gpus.size()),
                             .work = WorkOf(split),
                             .step_seconds = StepSeconds(profile_, gpus, split),
                             .compute_seconds = std::max(part.step - part.sync, 1e-3 * part.step) *
                                                (split.accumulations + 1)};
}

double ProfiledWork::RateAlone(const WorkState& state) const { return PackedRate(state, 1); }

double ProfiledWork::SecondsAlone(const WorkState& state) const {
  if (IsDone(state)) return 0;
  const double left = std::max(PhaseEnd(state) - state.progress, 0.0);
  return left / RateAlone(state) + segments_[static_cast<std::size_t>(state.phase)].alone_after;
}

}  // namespace pliant::simulator
