#include "trainer/learner/sgd.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

TEST(Sgd, FollowsTheFormulaForTwoSteps) {
  const SgdSettings settings = {.learning_rate = 0.5F, .momentum = 0.25F, .weight_decay = 0.125F};
  std::vector<float> momentum = {0, 0};
  std::vector<float> parameters = {8, -16};
  // descent = gradient + 0.125 parameter: 1 + 1 and 2 - 2.
  SgdStep(settings, std::vector<float>{1, 2}, momentum, parameters);
  EXPECT_THAT(momentum, testing::ElementsAre(2, 0));
  EXPECT_THAT(parameters, testing::ElementsAre(7, -16));
  // descent: 0.125 + 0.875 and 4 - 2; momentum: a quarter of it stays.
  SgdStep(settings, std::vector<float>{0.125F, 4}, momentum, parameters);
  EXPECT_THAT(momentum, testing::ElementsAre(1.5, 2));
  EXPECT_THAT(parameters, testing::ElementsAre(6.25, -17));
}

}  // namespace
}  // namespace pliant::learner
