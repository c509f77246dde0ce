#include "trainer/learner/update.h"

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A training with two parameters.
struct Training {
  TrainSpec train = {.learning_rate = 1, .optimizer = {}, .schedule = {}};
  std::vector<float> parameters = {10, 20};
  std::vector<float> momentum = {0, 0};
  GradientCells cells = 2;
  UpdateState::Counters counters;

  Result<bool> Step(const std::vector<float>& gradient, double loss = 1) {
    const std::span<float> optimizer[] = {momentum};
    return Update(
        train, 1, {.step = 7, .gradient = gradient, .sums = {.samples = 4, .loss = loss}},
        {.parameters = parameters, .optimizer = optimizer, .cells = &cells, .counters = &counters});
  }
};

TEST(Update, AGradientThatIsTooLongIsShortened) {
  Training training;
  training.train.clip_norm = 1;
  ASSERT_TRUE(training.Step({3, 4}));
  EXPECT_NEAR(training.parameters[0], 9.4, 1e-5);
  EXPECT_NEAR(training.parameters[1], 19.2, 1e-5);
  training.parameters = {10, 20};
  ASSERT_TRUE(training.Step({0.5F, 0}));
  EXPECT_THAT(training.parameters, ElementsAre(9.5, 20)) << "a short gradient is not clipped";
  ASSERT_TRUE(training.Step({0, 0}));
  EXPECT_THAT(training.parameters, ElementsAre(9.5, 20));
}

TEST(Update, StopSaysWhatIsNotFiniteAndWhatToDo) {
  struct Case {
    std::string name;
    std::vector<float> gradient;
    double loss;
    std::string want;
  };
  const Case cases[] = {
      {"a loss that is no number",
       {1, 1},
       kNan,
       "step 7 cannot be taken, its loss is not a number: "},
      {"a loss that overflowed",
       {1, 1},
       kInfinity,
       "step 7 cannot be taken, its loss is infinite: "},
      {"a gradient", {1, kInfinity}, 1, "step 7 cannot be taken, its gradient is not finite: "},
  };
  for (const Case& c : cases) {
    Training training;
    const auto taken = training.Step(c.gradient, c.loss);
    ASSERT_FALSE(taken) << c.name;
    EXPECT_EQ(taken.error().code, ErrorCode::kInvalid) << "a retry would not help";
    EXPECT_THAT(taken.error().message, HasSubstr(c.want));
    EXPECT_THAT(taken.error().message, HasSubstr("lower train.learningRate"));
    EXPECT_THAT(training.parameters, ElementsAre(10, 20)) << c.name;
  }
}

TEST(Update, SkipLeavesEverythingButTheCounter) {
  Training training;
  training.train.on_non_finite_loss = OnNonFiniteLoss::kSkip;
  EXPECT_EQ(training.Step({1, 1}, kNan), false);
  EXPECT_EQ(training.Step({1, kInfinity}), false);
  EXPECT_THAT(training.parameters, ElementsAre(10, 20));
  EXPECT_THAT(training.momentum, ElementsAre(0, 0));
  EXPECT_EQ(training.counters.updates, 0);
  EXPECT_EQ(training.counters.non_finite_in_a_row, 2);
  EXPECT_EQ(training.Step({1, 1}), true);
  EXPECT_THAT(training.parameters, ElementsAre(9, 19));
  EXPECT_EQ(training.counters.updates, 1);
  EXPECT_EQ(training.counters.non_finite_in_a_row, 0);
}

TEST(Update, ATrainingThatOnlySkipsStops) {
  Training training;
  training.train.on_non_finite_loss = OnNonFiniteLoss::kSkip;
  for (int i = 0; i < kMaxSkipsInARow; ++i) EXPECT_EQ(training.Step({1, 1}, kNan), false);
  const auto taken = training.Step({1, 1}, kNan);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message,
              HasSubstr("its loss is not a number, nor could the 100 steps before it: "));
}

TEST(Update, WarnTakesTheStep) {
  Training training;
  training.train.on_non_finite_loss = OnNonFiniteLoss::kWarn;
  EXPECT_EQ(training.Step({1, 1}, kNan), true);
  EXPECT_THAT(training.parameters, ElementsAre(9, 19));
  EXPECT_EQ(training.counters.updates, 1);
  EXPECT_EQ(training.counters.non_finite_in_a_row, 1);
}

}  // namespace
}  // namespace pliant::learner
