#include "trainer/data/random_stream.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(RandomStream, IsSplitMix64) {
  // The first outputs of S. Vigna's splitmix64.c with the seed 1234567.
  RandomStream stream(1234567);
  EXPECT_EQ(stream.Next(), 6457827717110365317U);
  EXPECT_EQ(stream.Next(), 3203168211198807973U);
  EXPECT_EQ(stream.Next(), 9817491932198370423U);
}

TEST(RandomStream, DrawsEveryValueBelowItsBoundAboutEquallyOften) {
  RandomStream stream(5);
  std::array<int, 9> seen{};
  for (int i = 0; i < 9000; ++i) ++seen.at(stream.Below(seen.size()));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(stream.Below(1), 0U);
}

}  // namespace
}  // namespace pliant
