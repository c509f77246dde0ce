#include "trainer/learner/update.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/log.h"
#include "trainer/collective/gradient_square.h"
#include "trainer/learner/optimizer.h"

namespace pliant::learner {
namespace {

// As in PyTorch's clip_grad_norm_: prevents division by zero for a gradient of zeros.
constexpr double kNormEpsilon = 1e-6;

float GradientScale(const TrainSpec& train, double norm) {
  if (!train.clip_norm) return 1;
  return static_cast<float>(std::min(1.0, *train.clip_norm / (norm + kNormEpsilon)));
}

// Empty if all is finite.
std::string WhatIsNotFinite(double loss, double norm) {
  if (std::isnan(loss)) return "its loss is not a number";
  if (std::isinf(loss)) return "its loss is infinite";
  if (!std::isfinite(norm)) return "its gradient is not finite";
  return "";
}

constexpr std::string_view kAdvice =
    "the training diverges, or its data are wrong: lower train.learningRate, warm it up "
    "(train.schedule) or set train.clipNorm";

// Whether the step is taken although its loss or gradient is not finite.
Result<bool> Judge(const TrainSpec& train, std::uint64_t step, const std::string& what,
                   UpdateState::Counters& counters) {
  const std::int64_t in_a_row = counters.non_finite_in_a_row + 1;
  if (train.on_non_finite_loss == OnNonFiniteLoss::kStop) {
    return Invalid(Format("step {} cannot be taken, {}: {}", step, what, kAdvice));
  }
  const bool skip = train.on_non_finite_loss == OnNonFiniteLoss::kSkip;
  if (skip && in_a_row > kMaxSkipsInARow) {
    return Invalid(Format("step {} cannot be taken, {}, nor could the {} steps before it: {}", step,
                          what, kMaxSkipsInARow, kAdvice));
  }
  counters.non_finite_in_a_row = in_a_row;
  if (in_a_row == 1) {
    log::Warning(skip ? "step skipped" : "step with a non-finite loss or gradient taken",
                 {{"step", step}, {"cause", what}});
  }
  return !skip;
}

}  // namespace

Result<bool> Update(const TrainSpec& train, std::uint64_t steps_per_epoch, const CommitTask& task,
                    const UpdateState& state) {
  const double norm = std::sqrt(GradientSquare::Of(*state.cells, task.gradient));
  const double loss = task.sums.samples > 0 ? task.sums.loss / task.sums.samples : task.sums.loss;
  if (const std::string what = WhatIsNotFinite(loss, norm); what.empty()) {
    state.counters->non_finite_in_a_row = 0;
  } else {
    ASSIGN_OR_RETURN(const bool taken, Judge(train, task.step, what, *state.counters));
    if (!taken) return false;
  }
  ++state.counters->updates;
  OptimizerStep(train.optimizer,
                {.learning_rate = LearningRateAt(train, task.schedule_step, steps_per_epoch) *
                                  ScaleOf(train.batch_scaling, task.doublings),
                 .weight_decay = train.weight_decay,
                 .gradient_scale = GradientScale(train, norm),
                 .update = state.counters->updates},
                task.gradient, state.optimizer, state.parameters);
  return true;
}

}  // namespace pliant::learner
