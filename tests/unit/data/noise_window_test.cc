#include "trainer/data/noise_window.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(IsMeasured, IsAFunctionOfTheStep) {
  EXPECT_TRUE(IsMeasured({.step = 0}));
  EXPECT_FALSE(IsMeasured({.step = 15}));
  EXPECT_TRUE(IsMeasured({.step = 160}));
  EXPECT_FALSE(IsMeasured({.kind = TickKind::kEvaluate, .step = 16}));
}

// Samples whose gradients are drawn around a known mean, with a known covariance.
struct Draws {
  static constexpr std::size_t kElements = 100;
  static constexpr double kMean = 0.1;       // of each element: |mean|² = 1
  static constexpr double kDeviation = 1.5;  // trace = 225

  std::mt19937_64 random{7};
  std::normal_distribution<double> noise{0, kDeviation};

  // One step: a window of its own. `sizes`: samples of each shard.
  NoiseWindow Step(const std::vector<std::uint64_t>& sizes) {
    ShardSpread spread;
    std::vector<double> mean(kElements);
    std::uint64_t samples = 0;
    for (const std::uint64_t size : sizes) {
      std::vector<double> leaf(kElements);
      for (std::uint64_t sample = 0; sample < size; ++sample) {
        for (double& element : leaf) element += kMean + noise(random);
      }
      double square = 0;
      for (std::size_t i = 0; i < kElements; ++i) {
        square += leaf[i] * leaf[i];
        mean[i] += leaf[i];
      }
      spread.Add(size, square);
      samples += size;
    }
    double square = 0;
    for (const double element : mean) square += element * element;
    NoiseWindow window;
    window.Add(spread, samples, square / static_cast<double>(samples * samples));
    return window;
  }
};

TEST(NoiseWindow, EstimatesWithoutBias) {
  const struct {
    const char* name;
    std::vector<std::uint64_t> sizes;
  } kCases[] = {
      {"two shards", {4, 4}},
      {"two unequal ones", {7, 1}},
      {"eight", std::vector<std::uint64_t>(8, 2)},
      {"sixty-four", std::vector<std::uint64_t>(64, 1)},
      {"ragged and empty ones", {3, 3, 3, 2, 2, 2, 1, 0, 0}},
  };
  for (const auto& test : kCases) {
    Draws draws;
    constexpr int kSteps = 3000;
    double trace = 0;
    double square = 0;
    for (int step = 0; step < kSteps; ++step) {
      const NoiseWindow window = draws.Step(test.sizes);
      EXPECT_EQ(window.steps, 1);
      trace += window.trace / kSteps;
      square += window.square / kSteps;
    }
    // Six standard errors: those of the trace of one covariance, and of |mean|² at 8 samples.
    EXPECT_NEAR(trace, 225, 4) << test.name;
    EXPECT_NEAR(square, 1, 0.55) << test.name;
  }
}

TEST(NoiseWindow, TheScaleIsTheQuotientOfTheMeans) {
  Draws draws;
  NoiseWindow window;
  for (int step = 0; step < 300; ++step) {
    EXPECT_EQ(window.filled(), step >= 10);
    EXPECT_EQ(window.scale().has_value(), step >= 10);
    ShardSpread spread;
    for (int shard = 0; shard < 4; ++shard) spread.Add(2, 2 * 225.0 + 4 * 1.0);
    window.Add(spread, 8, 225.0 / 8 + 1);
  }
  ASSERT_TRUE(window.scale());
  EXPECT_NEAR(*window.scale(), 225, 1e-9);
}

TEST(NoiseWindow, OneThatHidesTheGradientHasNoScale) {
  NoiseWindow window;
  ShardSpread spread;
  for (int shard = 0; shard < 4; ++shard) spread.Add(1, 5);
  for (int step = 0; step < 20; ++step) window.Add(spread, 4, 5.0 / 4 * 0.9);
  EXPECT_TRUE(window.filled());
  EXPECT_LT(window.square, 0);
  EXPECT_EQ(window.scale(), std::nullopt);
}

TEST(NoiseWindow, OneShardSaysNothing) {
  NoiseWindow window;
  ShardSpread spread;
  spread.Add(8, 3);
  spread.Add(0, 0);
  window.Add(spread, 8, 3.0 / 64);
  EXPECT_EQ(window, NoiseWindow{});
}

TEST(NoiseWindow, AValueThatIsNotFiniteEmptiesIt) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ShardSpread good;
  for (int shard = 0; shard < 4; ++shard) good.Add(2, 100);
  for (const double wrong : {kInfinity, std::nan(""), std::numeric_limits<double>::max()}) {
    NoiseWindow window;
    window.Add(good, 8, 2);
    EXPECT_NE(window, NoiseWindow{});
    ShardSpread spread = good;
    spread.Add(2, wrong);
    spread.Add(2, wrong);
    spread.Add(2, wrong);
    window.Add(spread, 14, wrong);
    EXPECT_EQ(window, NoiseWindow{}) << wrong;
    window.Add(good, 8, 2);
    EXPECT_EQ(window.steps, 1) << "it begins again";
  }
  EXPECT_FALSE((NoiseWindow{.trace = kInfinity}.valid()));
  EXPECT_FALSE((NoiseWindow{.square = std::nan("")}.valid()));
  EXPECT_FALSE((NoiseWindow{.steps = -1}.valid()));
  EXPECT_FALSE((NoiseWindow{.steps = 1e9}.valid()));
  EXPECT_TRUE((NoiseWindow{.trace = 3, .square = -1, .steps = 200}.valid()));
}

}  // namespace
}  // namespace pliant
