#include "trainer/learner/dropout.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

std::vector<float> Mask(std::uint64_t key, double rate, std::size_t size) {
  std::vector<float> mask(size, -1);
  FillDropoutMask(key, rate, mask);
  return mask;
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  constexpr std::size_t kSize = 20'001;  // odd, because values are drawn in pairs
  for (const double rate : {0.1, 0.5, 0.9}) {
    const std::vector<float> mask = Mask(3, rate, kSize);
    const auto kept = static_cast<float>(1 / (1 - rate));
    const auto dropped = static_cast<double>(std::ranges::count(mask, 0.0F));
    EXPECT_EQ(std::ranges::count(mask, kept) + std::ranges::count(mask, 0.0F), kSize);
    EXPECT_NEAR(dropped / kSize, rate, 0.02);
  }
}

TEST(Dropout, TheKeyAloneDecides) {
  EXPECT_EQ(Mask(3, 0.5, 100), Mask(3, 0.5, 100));
  EXPECT_NE(Mask(3, 0.5, 100), Mask(4, 0.5, 100));
  // A change would alter the results of jobs that continue with a newer release.
  EXPECT_EQ(Mask(1, 0.5, 8), (std::vector<float>{2, 2, 2, 0, 2, 2, 0, 2}));
}

}  // namespace
}  // namespace pliant::learner
