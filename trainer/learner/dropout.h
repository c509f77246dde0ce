#pragma once

#include <cstdint>
#include <span>

namespace pliant::learner {

// Fills `mask` with 0, with the probability `rate` (below 1), or 1 / (1 - rate): what dropout
// multiplies a layer's values with. The same for the same key.
void FillDropoutMask(std::uint64_t key, double rate, std::span<float> mask);

}  // namespace pliant::learner
