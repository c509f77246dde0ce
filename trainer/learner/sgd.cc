#include "trainer/learner/sgd.h"

#include <cstddef>

#include "base/check.h"

namespace pliant::learner {

void SgdStep(const SgdSettings& settings, std::span<const float> gradient,
             std::span<float> momentum, std::span<float> parameters) {
  CHECK(gradient.size() == parameters.size() && momentum.size() == parameters.size(),
        "every parameter has a gradient and a momentum");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float descent = gradient[i] + settings.weight_decay * parameters[i];
    momentum[i] = settings.momentum * momentum[i] + descent;
    parameters[i] -= settings.learning_rate * momentum[i];
  }
}

}  // namespace pliant::learner
