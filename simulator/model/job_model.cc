#include "simulator/model/job_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/divide.h"

namespace pliant::simulator {
BatchSplit SplitBatch(const Profile& profile, int batch, int learners, Alone alone) {
  const int local = DivideUp(batch, learners);
  int accumulations = DivideUp(local, profile.max_local()) - 1;
  if (learners == 1 && (alone == Alone::kAlwaysAccumulates || batch > profile.min_batch())) {
    accumulations = std::max(accumulations, 1);
  }
  const int parts = accumulations + 1;
  const int max_atomic = static_cast<int>(profile.max_batch() / (std::int64_t{learners} * parts));
  return {.learners = learners,
          .local = local,
          .accumulations = accumulations,
          .atomic = std::max(std::min(DivideUp(local, parts), max_atomic), 1)};
}

double StepSeconds(const Profile& profile, const Placement& placement, const BatchSplit& split) {
  const StepTime time = profile.step_times().At(placement, split.atomic);
  return time.step + (time.step - time.sync) * split.accumulations;
}

double NoiseScale(const GradientStats& gradients) {
  if (gradients.variance == 0) return 0;
  if (gradients.square == 0) return std::numeric_limits<double>::infinity();
  return gradients.variance / gradients.square;
}

double Gain(const GradientStats& gradients, double scale) {
  const double noise = gradients.variance / scale + gradients.square;
  if (noise == 0) return 1;
  return (gradients.variance + gradients.square) / noise;
}

double Goodput(const Profile& profile, int epoch, const Placement& placement,
               const BatchSplit& split) {
  const int batch = split.batch();
  const double scale = static_cast<double>(batch) / profile.min_batch();
  return Gain(profile.Gradients(epoch, batch), scale) / StepSeconds(profile, placement, split);
}

double Goodput(const Profile& profile, int epoch, const Placement& placement, int batch) {
  return Goodput(profile, epoch, placement, SplitBatch(profile, batch, Learners(placement)));
}

bool IsDone(const Profile& profile, const Training& training) {
  return training.epoch >= profile.epochs();
}

double ProgressLeft(const Profile& profile, const Training& training) {
  return std::max(profile.ProgressBound(training.epoch) - training.progress, 0.0);
}

Advanced Advance(const Profile& profile, const Training& training, double goodput,
                 std::int64_t seconds) {
  const double bound = profile.ProgressBound(training.epoch);
  const double reached = training.progress + goodput * static_cast<double>(seconds);
  if (reached < bound) {
    return {.training = {.epoch = training.epoch, .progress = reached}, .seconds = seconds};
  }
  // nearbyint rounds half to even, as the default rounding mode says.
  const double used = std::nearbyint(ProgressLeft(profile, training) / goodput);
  return {.training = {.epoch = training.epoch + 1, .progress = bound},
          .seconds = std::min(static_cast<std::int64_t>(used), seconds),
          .ended_epoch = true};
}

}  // namespace pliant::simulator
