#include "trainer/learner/train_spec.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

using Kind = LearningRateSchedule::Kind;

struct RateCase {
  std::string name;
  LearningRateSchedule schedule;
  std::vector<double> want;  // for steps 0, 1, 2, ...: four epochs of four steps at rate 1
};

const RateCase kRates[] = {
    {"constant", {}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"a line up", {.warmup_epochs = 1, .at_epochs = {}}, {0.25, 0.5, 0.75, 1, 1, 1}},
    {"half an epoch up", {.warmup_epochs = 0.5, .at_epochs = {}}, {0.5, 1, 1}},
    {"steps",
     {.kind = Kind::kStep, .at_epochs = {1, 2.5}, .factor = 0.5},
     {1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}},
    {"a line up, then steps",
     {.kind = Kind::kStep, .warmup_epochs = 0.5, .at_epochs = {1}, .factor = 0.1},
     {0.5, 1, 1, 1, 0.1, 0.1}},
    {"cosine",
     {.kind = Kind::kCosine, .at_epochs = {}},
     {1, (1 + std::cos(M_PI / 16)) / 2, (1 + std::cos(M_PI / 8)) / 2,
      (1 + std::cos(M_PI * 3 / 16)) / 2, (1 + std::cos(M_PI / 4)) / 2}},
    {"a line up, then cosine to a tenth",
     {.kind = Kind::kCosine, .warmup_epochs = 2, .at_epochs = {}, .least = 0.1},
     {0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1, 0.1 + 0.9 * (1 + std::cos(M_PI / 8)) / 2}},
    {"all warm-up",
     {.kind = Kind::kCosine, .warmup_epochs = 4, .at_epochs = {}},
     {0.0625, 0.125, 0.1875, 0.25}},
};

TEST(LearningRate, FollowsItsSchedule) {
  for (const RateCase& c : kRates) {
    const TrainSpec train = {
        .epochs = 4, .learning_rate = 1, .optimizer = {}, .schedule = c.schedule};
    for (std::size_t step = 0; step < c.want.size(); ++step) {
      EXPECT_DOUBLE_EQ(LearningRateAt(train, step, 4), c.want[step]) << c.name << ", step " << step;
    }
  }
}

TEST(LearningRate, CosineEndsAtItsLeast) {
  TrainSpec train = {.epochs = 4,
                     .learning_rate = 2,
                     .optimizer = {},
                     .schedule = {.kind = Kind::kCosine, .at_epochs = {}, .least = 0.25}};
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 16, 4), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 17, 4), 0.5) << "it stays at the last value";
  train.schedule.warmup_epochs = 4;
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 16, 4), 0.5);
}

TEST(LearningRate, FollowsABatchThatGrows) {
  const double linear[] = {1, 2, 4, 8};
  for (int doublings = 0; doublings < 4; ++doublings) {
    EXPECT_EQ(ScaleOf(BatchScaling::kNone, doublings), 1);
    EXPECT_EQ(ScaleOf(BatchScaling::kLinear, doublings), linear[doublings]);
    EXPECT_DOUBLE_EQ(ScaleOf(BatchScaling::kSqrt, doublings), std::sqrt(linear[doublings]));
  }
}

}  // namespace
}  // namespace pliant::learner
