#include "base/significant.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(WithDigits, KeepsTheFirstOnes) {
  EXPECT_EQ(WithDigits(12345.678, 4), 12350);
  EXPECT_EQ(WithDigits(0.0123456, 2), 0.012);
  EXPECT_EQ(WithDigits(999.96, 4), 1000);
  EXPECT_EQ(WithDigits(7, 4), 7);
  EXPECT_EQ(WithDigits(0, 4), 0);
  EXPECT_EQ(WithDigits(-3, 4), 0) << "no measured value";
}

}  // namespace
}  // namespace pliant
