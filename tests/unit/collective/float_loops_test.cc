#include "trainer/collective/float_loops.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/collective/buffer_pool.h"

namespace pliant {
namespace {

std::vector<float> Values(std::size_t size, float first) {
  std::vector<float> values = {0.0F, -0.0F, 1e-45F, -3e-39F, 3e38F, HUGE_VALF, 1.0F / 3};
  for (float value = first; values.size() < size; value *= -1.37F) values.push_back(value);
  values.resize(size);
  return values;
}

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(FloatLoops, AreTheSameOperationsWhateverTheSizeAndDivisor) {
  for (const std::size_t size : {0U, 1U, 7U, 15U, 16U, 17U, 100U}) {
    const std::vector<float> left = Values(size, 1e-9F);
    const std::vector<float> right = Values(size, 3e-7F);
    std::vector<float> out(size);
    AddInto(out.data(), left.data(), right.data(), size);
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(Bits(out[i]), Bits(left[i] + right[i]));
    // A division by a power of two becomes a multiplication by its reciprocal, but only where the
    // result has the same bits.
    for (const float divisor :
         {1.0F, 2.0F, 256.0F, 255.0F, 3.0F, 0.25F, 6e37F, 0x1p127F, 0x1p-149F}) {
      DivideInto(out.data(), left.data(), divisor, size);
      for (std::size_t i = 0; i < size; ++i)
        EXPECT_EQ(Bits(out[i]), Bits(left[i] / divisor)) << left[i] << " / " << divisor;
      MultiplyInto(out.data(), left.data(), divisor, size);
      for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(Bits(out[i]), Bits(left[i] * divisor));
      AddDivideInto(out.data(), left.data(), right.data(), divisor, size);
      for (std::size_t i = 0; i < size; ++i)
        EXPECT_EQ(Bits(out[i]), Bits((left[i] + right[i]) / divisor));
    }
    const FloatBuffer copy(size);
    CopyStreamed(copy.view().data(), left.data(), size);
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(Bits(copy.view()[i]), Bits(left[i]));
  }
}

}  // namespace
}  // namespace pliant
