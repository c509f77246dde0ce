#include "trainer/data/permutation.h"

#include <cmath>
#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(HashWords, IsTheSameOnEveryMachine) {
  EXPECT_EQ(HashWords({}), 0xe220a8397b1dcdafU);  // the first output of SplitMix64 with seed 0
  EXPECT_NE(HashWords({0}), HashWords({}));
  EXPECT_NE(HashWords({1, 2}), HashWords({2, 1}));
  EXPECT_NE(HashWords({0, 0}), HashWords({0}));
}

TEST(Permutation, TakesEveryValueOnce) {
  for (const std::uint64_t size : {1U, 2U, 3U, 4U, 5U, 7U, 16U, 17U, 255U, 256U, 257U, 5000U}) {
    for (const std::uint64_t key : {0U, 1U, 77U}) {
      const Permutation permutation(size, key);
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < size; ++i) seen.insert(permutation.At(i));
      EXPECT_EQ(seen.size(), size) << "key " << key;
      EXPECT_LT(*seen.rbegin(), size) << "key " << key;
    }
  }
}

TEST(Permutation, ReachesFarIntoLargeSets) {
  constexpr std::uint64_t kSize = (std::uint64_t{1} << 48) - 5;
  const Permutation permutation(kSize, 3);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    seen.insert(permutation.At(i));
    seen.insert(permutation.At(kSize - 1 - i));
  }
  EXPECT_EQ(seen.size(), 2000U);
  EXPECT_LT(*seen.rbegin(), kSize);
  EXPECT_GT(*seen.rbegin(), kSize / 100 * 98);
}

// This proves no randomness, but detects a network that mixes badly: a sample's position in one
// epoch must not predict its position in the next, and neighbours must not stay together.
TEST(Permutation, LooksShuffled) {
  constexpr std::uint64_t kSize = 1437;
  const Permutation first(kSize, 1);
  const Permutation second(kSize, 2);
  int fixed = 0;
  int neighbours = 0;
  double correlation = 0;
  for (std::uint64_t i = 0; i < kSize; ++i) {
    const auto a = static_cast<double>(first.At(i)) / kSize - 0.5;
    const auto b = static_cast<double>(second.At(i)) / kSize - 0.5;
    correlation += 12 * a * b / kSize;
    if (first.At(i) == second.At(i)) ++fixed;
    if (i > 0 && first.At(i) == first.At(i - 1) + 1) ++neighbours;
  }
  EXPECT_LT(fixed, 10);       // 1 is expected
  EXPECT_LT(neighbours, 10);  // 1 is expected
  EXPECT_LT(std::abs(correlation), 0.1);
}

}  // namespace
}  // namespace pliant
