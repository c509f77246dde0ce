#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/learner/train_spec.h"

// One optimizer step over all parameters as one array. Each element depends on its own numbers
// alone, so equal inputs give equal bits on every learner.
namespace pliant::learner {

// The arrays, each as long as the parameters, that an optimizer keeps between steps, by the names
// that PyTorch gives them ("exp_avg").
std::span<const std::string_view> StateNames(const Optimizer& optimizer);

struct StepSettings {
  double learning_rate = 0;
  double weight_decay = 0;
  float gradient_scale = 1;  // the gradient is multiplied by it first
  std::int64_t update = 1;   // counts the steps taken, from 1: AdamW's averages start at zero
};

// `state`: the arrays of StateNames, in its order.
void OptimizerStep(const Optimizer& optimizer, const StepSettings& settings,
                   std::span<const float> gradient, std::span<const std::span<float>> state,
                   std::span<float> parameters);

// The length of the gradient as one vector, summed in a fixed order. Not finite exactly when one of
// its elements is not: squares of floats do not overflow a double.
double GradientNorm(std::span<const float> gradient);

}  // namespace pliant::learner
