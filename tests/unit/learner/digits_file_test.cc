#include "trainer/learner/digits_file.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

std::string Line(int pixel, const std::string& digit) {
  std::string line;
  for (int i = 0; i < 64; ++i) line += std::to_string(pixel) + ",";
  return line + digit;
}

TEST(Digits, PixelsKeepTheirOrder) {
  const auto samples = ParseDigits("16," + Line(0, "3").substr(2) + "\r\n" + Line(7, "9"), "d.csv");
  ASSERT_TRUE(samples) << samples.error();
  EXPECT_EQ(samples->shape, (Shape{1, 8, 8}));
  EXPECT_EQ(samples->labels, (std::vector<std::uint8_t>{3, 9}));
  ASSERT_EQ(samples->pixels.size(), 128U);
  EXPECT_EQ(samples->pixels[0], 16);
  EXPECT_EQ(samples->pixels[1], 0);
  EXPECT_EQ(samples->pixels.back(), 7);
}

TEST(Digits, AWrongLineIsNamed) {
  const std::string expected =
      ": expected 64 pixels of 0..16 and a digit of 0..9, separated by commas";
  const std::string good = Line(5, "1") + "\n";
  for (const std::string& wrong :
       {Line(17, "1"), Line(5, "10"), Line(5, "-1"), Line(5, "1,"), Line(5, ""),
        "1," + Line(5, "1"), std::string("pixel,digit"), std::string("")}) {
    const auto samples = ParseDigits(good + wrong + "\n" + good, "d.csv");
    ASSERT_FALSE(samples) << wrong;
    EXPECT_EQ(samples.error(), (Error{ErrorCode::kInvalid, "d.csv:2" + expected})) << wrong;
  }
}

TEST(Digits, AFileWithoutImagesIsInvalid) {
  EXPECT_EQ(ParseDigits("", "d.csv").error().message, "d.csv: holds no image");
}

TEST(Digits, TheDemosDataIsWhole) {
  const DatasetSpec spec;
  const std::filesystem::path folder = std::filesystem::path(PLIANT_SOURCE_DIR) / "manifests/demo";
  const auto train = ReadSamples(spec, {.images = {"digits-train.csv"}, .labels = {}}, folder);
  const auto test = ReadSamples(spec, {.images = {"digits-test.csv"}, .labels = {}}, folder);
  ASSERT_TRUE(train) << train.error();
  ASSERT_TRUE(test) << test.error();
  EXPECT_EQ(train->count(), 1437U);
  EXPECT_EQ(test->count(), 360U);
}

}  // namespace
}  // namespace pliant::learner
