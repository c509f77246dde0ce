#include "trainer/learner/images.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

// Pixel values without scaling.
DatasetSpec AsTheyAre(std::size_t channels = 1) {
  return {.kind = DataKind::kIdx,
          .train = {},
          .test = {},
          .normalize = {.mean = std::vector<double>(channels, 0.0),
                        .deviation = std::vector<double>(channels, 1.0 / 255)},
          .augment = {}};
}

std::vector<float> Written(const std::vector<std::uint8_t>& pixels, const Shape& shape,
                           const Placement& placement) {
  std::vector<float> values(pixels.size(), -1);
  WriteImage(pixels, shape, MakePixelTable(AsTheyAre(), shape[0]), placement, values);
  return values;
}

TEST(Images, ArePlacedByTheirOffsetsAndThenMirrored) {
  const std::vector<std::uint8_t> image = {1, 2, 3,   //
                                           4, 5, 6};  // two rows of three
  const Shape shape = {1, 2, 3};
  using testing::ElementsAre;
  EXPECT_THAT(Written(image, shape, {}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Written(image, shape, {.down = 1}), ElementsAre(0, 0, 0, 1, 2, 3));
  EXPECT_THAT(Written(image, shape, {.down = -1}), ElementsAre(4, 5, 6, 0, 0, 0));
  EXPECT_THAT(Written(image, shape, {.right = 1}), ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(Written(image, shape, {.right = -2}), ElementsAre(3, 0, 0, 6, 0, 0));
  EXPECT_THAT(Written(image, shape, {.right = -3}), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Written(image, shape, {.mirrored = true}), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(Written(image, shape, {.right = 1, .mirrored = true}), ElementsAre(2, 1, 0, 5, 4, 0));
  EXPECT_THAT(Written({1, 2, 3, 4}, {2, 1, 2}, {.mirrored = true}), ElementsAre(2, 1, 4, 3));
}

TEST(Images, AreNormalizedByChannel) {
  DatasetSpec spec = {.kind = DataKind::kCifar10, .train = {}, .test = {}};
  const PixelTable plain = MakePixelTable(spec, 3);
  for (const auto& channel : plain) {
    EXPECT_EQ(channel[0], -1);
    EXPECT_EQ(channel[255], 1);
  }
  spec.normalize = {.mean = {0.2, 0.4, 0.6}, .deviation = {0.5}};
  const PixelTable table = MakePixelTable(spec, 3);
  EXPECT_FLOAT_EQ(table[0][255], 1.6F);
  EXPECT_FLOAT_EQ(table[1][255], 1.2F);
  EXPECT_FLOAT_EQ(table[2][0], -1.2F);
  const PixelTable digits = MakePixelTable({.kind = DataKind::kDigits, .train = {}, .test = {}}, 1);
  for (int value = 0; value <= 16; ++value) {
    EXPECT_EQ(digits[0][static_cast<std::size_t>(value)], static_cast<float>(value) / 8 - 1);
  }
}

TEST(Images, PlacementsDependOnSeedAndSampleAloneAndReachEverything) {
  const Augment augment = {.crop_padding = 2, .horizontal_flip = true};
  std::map<std::int64_t, int> down;
  std::map<std::int64_t, int> right;
  int mirrored = 0;
  constexpr int kDraws = 5000;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    const Placement placement = DrawPlacement(augment, 7, sample);
    EXPECT_EQ(placement, DrawPlacement(augment, 7, sample));
    ++down[placement.down];
    ++right[placement.right];
    mirrored += placement.mirrored ? 1 : 0;
  }
  for (const auto& offsets : {down, right}) {
    ASSERT_EQ(offsets.size(), 5U);
    EXPECT_EQ(offsets.begin()->first, -2);
    for (const auto& [offset, count] : offsets) EXPECT_NEAR(count, kDraws / 5, 150) << offset;
  }
  EXPECT_NEAR(mirrored, kDraws / 2, 200);
  EXPECT_NE(DrawPlacement(augment, 7, 1), DrawPlacement(augment, 8, 1));
  EXPECT_EQ(DrawPlacement({}, 7, 1), Placement{}) << "without augmentation nothing is drawn";
}

}  // namespace
}  // namespace pliant::learner
