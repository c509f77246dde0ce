#include "trainer/learner/dropout.h"

#include <cstddef>

#include "base/check.h"
#include "trainer/data/random_stream.h"

namespace pliant::learner {

void FillDropoutMask(std::uint64_t key, double rate, std::span<float> mask) {
  CHECK(rate >= 0 && rate < 1, "some values stay");
  constexpr double kDraws = 4294967296.0;  // 2^32: a 64-bit word holds two draws
  const auto drop_below = static_cast<std::uint64_t>(rate * kDraws);
  const auto kept = static_cast<float>(1 / (1 - rate));
  RandomStream stream(key);
  for (std::size_t i = 0; i < mask.size(); i += 2) {
    const std::uint64_t word = stream.Next();
    mask[i] = (word >> 32) < drop_below ? 0.0F : kept;
    if (i + 1 < mask.size()) mask[i + 1] = (word & 0xffffffff) < drop_below ? 0.0F : kept;
  }
}

}  // namespace pliant::learner
