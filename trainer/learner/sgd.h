#pragma once

#include <span>

namespace pliant::learner {

struct SgdSettings {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
};

// One step of gradient descent with momentum and L2 weight decay, as PyTorch's SGD defines it. Each
// element depends on its own three numbers alone, so equal inputs give equal bits on every learner.
void SgdStep(const SgdSettings& settings, std::span<const float> gradient,
             std::span<float> momentum, std::span<float> parameters);

}  // namespace pliant::learner
