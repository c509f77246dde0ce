#include "trainer/learner/digits_data.h"

#include <array>
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

TEST(Digits, PixelsAreScaledAndKeepTheirOrder) {
  const auto samples = ParseDigits(Line(0, "3") + "\r\n" + Line(16, "9"), "d.csv");
  ASSERT_TRUE(samples) << samples.error();
  EXPECT_EQ(samples->labels, (std::vector<std::int64_t>{3, 9}));
  ASSERT_EQ(samples->pixels.size(), 128U);
  EXPECT_EQ(samples->pixels.front(), -1.0F);
  EXPECT_EQ(samples->pixels.back(), 1.0F);
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
  EXPECT_EQ(ReadDigits("/nowhere/d.csv").error(),
            (Error{ErrorCode::kInvalid, "read /nowhere/d.csv: No such file or directory"}));
}

TEST(Digits, TheDemosDataIsWhole) {
  const std::filesystem::path folder = std::filesystem::path(PLIANT_SOURCE_DIR) / "manifests/demo";
  const auto train = ReadDigits(folder / "digits-train.csv");
  const auto test = ReadDigits(folder / "digits-test.csv");
  ASSERT_TRUE(train) << train.error();
  ASSERT_TRUE(test) << test.error();
  EXPECT_EQ(train->count(), 1437U);
  EXPECT_EQ(test->count(), 360U);
}

}  // namespace
}  // namespace pliant::learner
