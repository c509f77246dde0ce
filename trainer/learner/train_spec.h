#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace pliant::learner {

// Sgd and AdamW as PyTorch defines them.
struct Sgd {
  double momentum = 0;
  bool nesterov = false;
  bool operator==(const Sgd&) const = default;
};
struct AdamW {
  double beta1 = 0.9;    // decay of the average gradient
  double beta2 = 0.999;  // decay of the average squared gradient
  double epsilon = 1e-8;
  bool operator==(const AdamW&) const = default;
};
using Optimizer = std::variant<Sgd, AdamW>;

// The course of the learning rate, in epochs, so that it does not depend on the batch size. During
// `warmup_epochs` it rises linearly from almost 0 to train.learningRate.
struct LearningRateSchedule {
  enum class Kind { kConstant, kStep, kCosine };
  Kind kind = Kind::kConstant;
  double warmup_epochs = 0;
  std::vector<double> at_epochs;  // kStep: at each of them the rate is multiplied by `factor`
  double factor = 0.1;
  double least = 0;  // kCosine: as a share of train.learningRate, at the end of the last epoch
  bool operator==(const LearningRateSchedule&) const = default;
};

// The factor of the learning rate when the batch has grown n-fold: 1; n, for SGD; √n, for Adam.
enum class BatchScaling { kNone, kLinear, kSqrt };
double ScaleOf(BatchScaling scaling, int doublings);

// How to handle a step whose loss or gradient is not a finite number.
enum class OnNonFiniteLoss {
  kStop,  // the training fails with an error
  kSkip,  // the step is skipped: its samples have no effect
  kWarn,  // the step is taken
};

struct TrainSpec {
  std::uint64_t epochs = 1;
  double learning_rate = 0.1;
  double weight_decay = 0;
  Optimizer optimizer;
  LearningRateSchedule schedule;
  // How the learning rate follows a batch that grows.
  BatchScaling batch_scaling = BatchScaling::kNone;
  std::optional<double> clip_norm;  // the maximum norm of the whole gradient
  double label_smoothing = 0;
  OnNonFiniteLoss on_non_finite_loss = OnNonFiniteLoss::kStop;
  // Settings of the job. A model file may repeat them; they must then be equal.
  std::optional<std::uint64_t> batch_size;
  std::optional<int> logical_shards;
  std::optional<std::uint64_t> seed;
  bool operator==(const TrainSpec&) const = default;
};

// The learning rate of one optimizer step: a pure function, so there is no position to keep.
// `step` counts from 0, with a batch that never changes (CommitTask::schedule_step), as does
// `steps_per_epoch`, which is at least 1.
double LearningRateAt(const TrainSpec& train, std::uint64_t step, std::uint64_t steps_per_epoch);

}  // namespace pliant::learner
