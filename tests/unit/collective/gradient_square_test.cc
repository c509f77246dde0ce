#include "trainer/collective/gradient_square.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/collective/gradient_accumulator.h"

namespace pliant {
namespace {

std::vector<float> Gradient(std::size_t elements) {
  std::vector<float> gradient(elements);
  float value = 1.0F / 3;
  for (float& element : gradient) element = value = std::sin(value * 1e3F);
  return gradient;
}

constexpr std::size_t kSizes[] = {0, 1, 40, 2047, 2048, 2049, 10000};

TEST(GradientSquare, IsTheSumOfChunksInTheirOrder) {
  for (const std::size_t elements : kSizes) {
    const std::vector<float> gradient = Gradient(elements);
    double want = 0;
    for (std::size_t chunk = 0; chunk < elements; chunk += 2048) {
      double lanes[8] = {};
      for (std::size_t i = chunk; i < std::min(elements, chunk + 2048); ++i) {
        lanes[(i - chunk) % 8] += static_cast<double>(gradient[i]) * gradient[i];
      }
      want += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
              ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    }
    EXPECT_EQ(GradientSquare::Of(gradient), want) << elements;
    double exact = 0;
    for (const float element : gradient) exact += static_cast<double>(element) * element;
    EXPECT_NEAR(want, exact, exact * 1e-12);
  }
}

// Cuts the gradient anywhere, and writes over each part once it was added.
TEST(GradientSquare, HasTheSameBitsHoweverTheGradientBecomesFinal) {
  std::mt19937_64 random(3);
  GradientSquare square;
  for (const std::size_t elements : kSizes) {
    const double whole = GradientSquare::Of(Gradient(elements));
    for (const std::size_t most : {7U, 2000U, 2048U, 5000U}) {
      std::vector<float> gradient = Gradient(elements);
      std::vector<ElementRange> parts;
      for (std::size_t begin = 0; begin < elements; begin = parts.back().end()) {
        parts.push_back(
            {.begin = begin, .size = std::min<std::size_t>(1 + random() % most, elements - begin)});
      }
      std::ranges::shuffle(parts, random);
      square.Begin(elements);
      for (const ElementRange& part : parts) {
        square.Add(gradient, part);
        std::ranges::fill(std::span(gradient).subspan(part.begin, part.size), NAN);
      }
      EXPECT_EQ(square.Sum(), whole) << elements << " in parts of " << most;
    }
  }
}

TEST(GradientSquare, IsInfiniteOrNoNumberIfAnElementIs) {
  std::vector<float> gradient = Gradient(3000);
  gradient[2500] = HUGE_VALF;
  EXPECT_EQ(GradientSquare::Of(gradient), HUGE_VAL);
  gradient[10] = NAN;
  EXPECT_TRUE(std::isnan(GradientSquare::Of(gradient)));
  gradient.assign(3000, 3e38F);
  EXPECT_TRUE(std::isfinite(GradientSquare::Of(gradient))) << "squares of floats do not overflow";
}

// The leaves of all shards, whichever rank computes them and whichever buckets it hands out early.
TEST(GradientAccumulator, MeasuresEachLeafForAnyDivision) {
  constexpr std::size_t kLeafElements = 5000;
  constexpr int kShards = 8;
  GradientAccumulator accumulator(kLeafElements, kShards);
  const auto leaf_of = [](int shard) {
    std::vector<float> leaf = Gradient(kLeafElements);
    for (float& element : leaf) element += static_cast<float>(shard);
    return leaf;
  };
  for (const BucketSizes sizes : {BucketSizes{16, 16}, {1000, 3000}, {5000, 5000}}) {
    for (const int world : {1, 2, 3, 5, 8}) {
      const ShardMap map = AssignShards(kShards, world);
      for (int rank = 0; rank < world; ++rank) {
        accumulator.Begin(kShards, map.blocks_of_rank[static_cast<std::size_t>(rank)], sizes,
                          /*measure=*/true);
        while (!accumulator.done()) {
          const int shard = accumulator.next_shard();
          EXPECT_TRUE(accumulator.left_sibling().empty()) << "the leaf itself is measured";
          std::ranges::copy(leaf_of(shard), accumulator.Leaf().begin());
          if (accumulator.completes_block()) {
            const auto nothing = [](std::uint32_t) {};
            accumulator.AccumulateReady({.begin = 3000, .size = 1500}, nothing);
            accumulator.AccumulateReady({.begin = 100, .size = 2900}, nothing);
          }
          accumulator.Accumulate();
          EXPECT_EQ(accumulator.leaf_square(), GradientSquare::Of(leaf_of(shard)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace pliant
