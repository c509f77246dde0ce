#pragma once

#include <cstdint>

#include "simulator/model/placement.h"
#include "simulator/model/profile.h"

// How a job trains: pure functions of a profile and a small state.
namespace pliant::simulator {

// A batch divided among learners. Each computes `accumulations` + 1 parts of `atomic` samples, and
// synchronises after the last.
struct BatchSplit {
  int learners = 1;
  int local = 1;          // samples a learner, before rounding to whole parts
  int accumulations = 0;  // parts before the last
  int atomic = 1;         // samples of a part
  // The batch that is trained. It may exceed the batch that was divided.
  int batch() const { return learners * atomic * (accumulations + 1); }
  bool operator==(const BatchSplit&) const = default;
};

// When one learner alone accumulates: two parts are needed to estimate the noise of its gradients.
enum class Alone {
  kAccumulatesAboveMinBatch,  // how jobs train
  kAlwaysAccumulates,         // how Optimus predicts that they train
};

// `batch` and `learners` must be positive. The batch that is trained is at most the profile's
// largest, unless there are more parts than that has samples: then a part has one sample.
BatchSplit SplitBatch(const Profile& profile, int batch, int learners,
                      Alone alone = Alone::kAccumulatesAboveMinBatch);

// Seconds of a step with its accumulations.
double StepSeconds(const Profile& profile, const Placement& placement, const BatchSplit& split);

// The batch at which noise and signal are equal, in units of the smallest batch; infinite if the
// gradients are only noise, 0 if there are none.
double NoiseScale(const GradientStats& gradients);

// By how much a step of `scale` times the smallest batch trains farther than one of the smallest:
// from 1 to `scale`.
double Gain(const GradientStats& gradients, double scale);

// Progress a second, in iterations of the smallest batch, while epoch `epoch` is trained.
double Goodput(const Profile& profile, int epoch, const Placement& placement,
               const BatchSplit& split);
// The same for a batch that is divided among the learners of the placement.
double Goodput(const Profile& profile, int epoch, const Placement& placement, int batch);

// Where the training of a job stands.
struct Training {
  int epoch = 0;        // finished epochs
  double progress = 0;  // in iterations of the smallest batch
  bool operator==(const Training&) const = default;
};

bool IsDone(const Profile& profile, const Training& training);

// Progress to the end of the epoch; at least 0.
double ProgressLeft(const Profile& profile, const Training& training);

struct Advanced {
  Training training;
  std::int64_t seconds = 0;  // that were used
  bool ended_epoch = false;
};

// Trains for at most `seconds`, and at most to the end of the epoch, which is rounded to a whole
// second, half to even. `goodput` must be positive, and the training not done.
Advanced Advance(const Profile& profile, const Training& training, double goodput,
                 std::int64_t seconds);

}  // namespace pliant::simulator
