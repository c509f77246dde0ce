#pragma once

#include <cstdint>
#include <span>

namespace pliant::learner {

// Fills `mask` with the factors that dropout multiplies a layer's values with: 0 with probability
// `rate` (below 1), else 1 / (1 - rate). The same key gives the same mask.
void FillDropoutMask(std::uint64_t key, double rate, std::span<float> mask);

}  // namespace pliant::learner
