#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/learner/train_spec.h"

// One optimizer step over all parameters as one array. Each element depends only on its own values,
// so equal inputs give equal bits on every learner.
namespace pliant::learner {

// PyTorch's names ("exp_avg") of the arrays that an optimizer keeps between steps. Each array is as
// long as the parameters.
std::span<const std::string_view> StateNames(const Optimizer& optimizer);

struct StepSettings {
  double learning_rate = 0;
  double weight_decay = 0;
  float gradient_scale = 1;  // the gradient is first multiplied by it
  std::int64_t update = 1;   // number of this step, from 1: AdamW corrects the bias of its averages
};

// `state`: the arrays of StateNames, in its order.
void OptimizerStep(const Optimizer& optimizer, const StepSettings& settings,
                   std::span<const float> gradient, std::span<const std::span<float>> state,
                   std::span<float> parameters);

}  // namespace pliant::learner
