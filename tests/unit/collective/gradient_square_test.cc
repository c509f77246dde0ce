#include "trainer/collective/gradient_square.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
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

double SquareOfCell(std::span<const float> cell) {
  double lanes[8] = {};
  for (std::size_t i = 0; i < cell.size(); ++i)
    lanes[i % 8] += static_cast<double>(cell[i]) * cell[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

TEST(GradientCells, BeginAgainInEachTensor) {
  const std::vector<std::size_t> tensors = {5000, 0, 1, 2048, 2049};
  const GradientCells cells(tensors);
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t cell = 0; cell < cells.count(); ++cell)
    found.emplace_back(cells.RangeOf(cell).begin, cells.RangeOf(cell).size);
  EXPECT_THAT(found,
              testing::ElementsAre(std::pair(0, 2048), std::pair(2048, 2048), std::pair(4096, 904),
                                   std::pair(5000, 1), std::pair(5001, 2048), std::pair(7049, 2048),
                                   std::pair(9097, 1)));
  EXPECT_EQ(cells.elements(), 9098U);
  for (std::size_t element = 0; element < cells.elements(); ++element) {
    const ElementRange range = cells.RangeOf(cells.CellOf(element));
    ASSERT_TRUE(range.begin <= element && element < range.end()) << element;
  }
  EXPECT_EQ(GradientCells(std::size_t{0}).count(), 0U);
}

TEST(GradientCells, AreAddedUpAsNeighbours) {
  EXPECT_EQ(SumOfCells({}), 0);
  EXPECT_EQ(SumOfCells({3}), 3);
  const double tiny = 0x1p-53;  // is lost when it is added to 1
  EXPECT_EQ(SumOfCells({1, tiny, tiny, tiny}), (1 + tiny) + (tiny + tiny));
  EXPECT_EQ(SumOfCells({1, tiny, tiny, tiny, tiny}), ((1 + tiny) + (tiny + tiny)) + tiny);
  EXPECT_NE(SumOfCells({1, tiny, tiny, tiny}), ((1 + tiny) + tiny) + tiny);
}

TEST(GradientSquare, IsTheSumOfItsCells) {
  for (const std::size_t elements : kSizes) {
    const std::vector<float> gradient = Gradient(elements);
    const std::vector<std::size_t> tensors = {elements / 3, elements - elements / 3};
    std::vector<double> squares;
    double exact = 0;
    std::size_t first = 0;
    for (const std::size_t size : tensors) {
      for (std::size_t begin = 0; begin < size; begin += 2048)
        squares.push_back(SquareOfCell(
            std::span(gradient).subspan(first + begin, std::min<std::size_t>(2048, size - begin))));
      first += size;
    }
    for (const float element : gradient) exact += static_cast<double>(element) * element;
    const GradientCells cells(tensors);
    const double square = GradientSquare::Of(cells, gradient);
    EXPECT_EQ(square, SumOfCells(squares)) << elements;
    EXPECT_NEAR(square, exact, exact * 1e-12);
    const std::vector<const float*> places = {gradient.data(), gradient.data() + tensors[0]};
    EXPECT_EQ(GradientSquare::Of(cells, tensors, places), square) << "wherever the tensors lie";
  }
}

TEST(GradientSquare, ATensorWithoutGradientCountsAsZero) {
  const std::vector<float> gradient = {3, 4};
  const std::vector<std::size_t> tensors = {2, 5000, 2};
  const GradientCells cells(tensors);
  EXPECT_EQ(GradientSquare::Of(cells, tensors,
                               std::vector<const float*>{gradient.data(), nullptr, nullptr}),
            25);
}

// Cuts the gradient anywhere, and writes over each part once it was added.
TEST(GradientSquare, HasTheSameBitsHoweverTheGradientBecomesFinal) {
  std::mt19937_64 random(3);
  GradientSquare square;
  for (const std::size_t elements : kSizes) {
    const GradientCells cells = elements;
    const double whole = GradientSquare::Of(elements, Gradient(elements));
    for (const std::size_t most : {7U, 2000U, 2048U, 5000U}) {
      std::vector<float> gradient = Gradient(elements);
      std::vector<ElementRange> parts;
      for (std::size_t begin = 0; begin < elements; begin = parts.back().end()) {
        parts.push_back(
            {.begin = begin, .size = std::min<std::size_t>(1 + random() % most, elements - begin)});
      }
      std::ranges::shuffle(parts, random);
      square.Begin(cells);
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
  EXPECT_EQ(GradientSquare::Of(gradient.size(), gradient), HUGE_VAL);
  gradient[10] = NAN;
  EXPECT_TRUE(std::isnan(GradientSquare::Of(gradient.size(), gradient)));
  gradient.assign(3000, 3e38F);
  EXPECT_TRUE(std::isfinite(GradientSquare::Of(gradient.size(), gradient)))
      << "squares of floats do not overflow";
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
          EXPECT_EQ(accumulator.leaf_square(),
                    GradientSquare::Of(leaf_of(shard).size(), leaf_of(shard)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace pliant
