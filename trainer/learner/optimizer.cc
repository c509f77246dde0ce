#include "trainer/learner/optimizer.h"

#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace pliant::learner {
namespace {

constexpr std::string_view kSgdState[] = {"momentum"};
constexpr std::string_view kAdamWState[] = {"exp_avg", "exp_avg_sq"};

void Step(const Sgd& sgd, const StepSettings& settings, std::span<const float> gradient,
          std::span<float> momentum, std::span<float> parameters) {
  const auto learning_rate = static_cast<float>(settings.learning_rate);
  const auto weight_decay = static_cast<float>(settings.weight_decay);
  const auto keep = static_cast<float>(sgd.momentum);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float descent = gradient[i] * settings.gradient_scale + weight_decay * parameters[i];
    momentum[i] = keep * momentum[i] + descent;
    const float step = sgd.nesterov ? descent + keep * momentum[i] : momentum[i];
    parameters[i] -= learning_rate * step;
  }
}

void Step(const AdamW& adam, const StepSettings& settings, std::span<const float> gradient,
          std::span<float> average, std::span<float> average_square, std::span<float> parameters) {
  const auto updates = static_cast<double>(settings.update);
  const auto beta1 = static_cast<float>(adam.beta1);
  const auto beta2 = static_cast<float>(adam.beta2);
  const auto epsilon = static_cast<float>(adam.epsilon);
  const auto rate =
      static_cast<float>(settings.learning_rate / (1 - std::pow(adam.beta1, updates)));
  const auto root_of_correction = static_cast<float>(std::sqrt(1 - std::pow(adam.beta2, updates)));
  const auto shrink = static_cast<float>(1 - settings.learning_rate * settings.weight_decay);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float slope = gradient[i] * settings.gradient_scale;
    average[i] = beta1 * average[i] + (1 - beta1) * slope;
    average_square[i] = beta2 * average_square[i] + (1 - beta2) * slope * slope;
    const float size = std::sqrt(average_square[i]) / root_of_correction + epsilon;
    parameters[i] = parameters[i] * shrink - rate * average[i] / size;
  }
}

}  // namespace

std::span<const std::string_view> StateNames(const Optimizer& optimizer) {
  if (std::holds_alternative<AdamW>(optimizer)) return kAdamWState;
  return kSgdState;
}

void OptimizerStep(const Optimizer& optimizer, const StepSettings& settings,
                   std::span<const float> gradient, std::span<const std::span<float>> state,
                   std::span<float> parameters) {
  CHECK(state.size() == StateNames(optimizer).size(), "the optimizer's own arrays");
  CHECK(gradient.size() == parameters.size(), "every parameter has a gradient");
  for (const std::span<float> array : state) {
    CHECK(array.size() == parameters.size(), "every parameter has its place in the state");
  }
  if (const auto* adam = std::get_if<AdamW>(&optimizer)) {
    Step(*adam, settings, gradient, state[0], state[1], parameters);
  } else {
    Step(std::get<Sgd>(optimizer), settings, gradient, state[0], parameters);
  }
}

}  // namespace pliant::learner
