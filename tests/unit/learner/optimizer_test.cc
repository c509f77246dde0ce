#include "trainer/learner/optimizer.h"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

using testing::ElementsAre;

struct Taken {
  std::vector<std::vector<float>> state;
  std::vector<float> parameters;

  void Step(const Optimizer& optimizer, const StepSettings& settings,
            const std::vector<float>& gradient) {
    state.resize(StateNames(optimizer).size());
    std::vector<std::span<float>> views;
    for (std::vector<float>& array : state) {
      array.resize(parameters.size());
      views.emplace_back(array);
    }
    OptimizerStep(optimizer, settings, gradient, views, parameters);
  }
};

TEST(Sgd, TwoSteps) {
  const Sgd sgd = {.momentum = 0.25};
  const StepSettings settings = {.learning_rate = 0.5, .weight_decay = 0.125};
  Taken taken = {.state = {}, .parameters = {8, -16}};
  // descent = gradient + 0.125 parameter: 1 + 1 and 2 - 2.
  taken.Step(sgd, settings, {1, 2});
  EXPECT_THAT(taken.state[0], ElementsAre(2, 0));
  EXPECT_THAT(taken.parameters, ElementsAre(7, -16));
  // descent: 0.125 + 0.875 and 4 - 2; momentum: one quarter remains.
  taken.Step(sgd, settings, {0.125F, 4});
  EXPECT_THAT(taken.state[0], ElementsAre(1.5, 2));
  EXPECT_THAT(taken.parameters, ElementsAre(6.25, -17));
}

TEST(Sgd, NesterovLooksAhead) {
  const Sgd sgd = {.momentum = 0.5, .nesterov = true};
  Taken taken = {.state = {}, .parameters = {0}};
  taken.Step(sgd, {.learning_rate = 1}, {2});  // 2 + 0.5 * 2
  EXPECT_THAT(taken.parameters, ElementsAre(-3));
  taken.Step(sgd, {.learning_rate = 1}, {2});  // momentum 3; 2 + 0.5 * 3
  EXPECT_THAT(taken.parameters, ElementsAre(-6.5));
}

TEST(Optimizer, TheGradientIsScaledFirst) {
  Taken taken = {.state = {}, .parameters = {8}};
  taken.Step(Sgd{}, {.learning_rate = 1, .weight_decay = 0.5, .gradient_scale = 0.25F}, {8});
  EXPECT_THAT(taken.parameters, ElementsAre(2));  // 8 - (2 + 4)
}

// Compared with the formula of the paper (Loshchilov and Hutter 2019) in double precision.
TEST(AdamW, FollowsItsFormula) {
  const AdamW adam = {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3};
  const double rate = 0.01;
  const double decay = 0.1;
  const std::vector<double> gradients = {0.5, -2, 3, 0, 0.25};
  Taken taken = {.state = {}, .parameters = {1.5F}};
  double parameter = 1.5;
  double average = 0;
  double square = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    taken.Step(
        adam,
        {.learning_rate = rate, .weight_decay = decay, .update = static_cast<std::int64_t>(i) + 1},
        {static_cast<float>(gradients[i])});
    const auto t = static_cast<double>(i + 1);
    average = adam.beta1 * average + (1 - adam.beta1) * gradients[i];
    square = adam.beta2 * square + (1 - adam.beta2) * gradients[i] * gradients[i];
    const double corrected = average / (1 - std::pow(adam.beta1, t));
    const double size = std::sqrt(square / (1 - std::pow(adam.beta2, t))) + adam.epsilon;
    parameter -= rate * decay * parameter;
    parameter -= rate * corrected / size;
    EXPECT_NEAR(taken.parameters[0], parameter, 1e-6) << "update " << t;
  }
  EXPECT_NEAR(taken.state[0][0], average, 1e-6);
  EXPECT_NEAR(taken.state[1][0], square, 1e-6);
}

}  // namespace
}  // namespace pliant::learner
