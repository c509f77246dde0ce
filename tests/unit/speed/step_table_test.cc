#include "operator/speed/step_table.h"

#include <random>

#include <gtest/gtest.h>

namespace pliant::speed {
namespace {

MeasuredStep StepOf(int learners, double seconds) {
  return {.learners = learners,
          .nodes = 1,
          .work = {.parts = 1, .samples = 8},
          .step_seconds = seconds,
          .compute_seconds = seconds / 2};
}

TEST(StepTable, ANewSizeIsNews) {
  StepTable table;
  EXPECT_TRUE(table.Add(StepOf(2, 1)));
  EXPECT_TRUE(table.Add(StepOf(1, 2)));
  EXPECT_FALSE(table.Add(StepOf(2, 1)));
  ASSERT_EQ(table.steps().size(), 2u);
  EXPECT_EQ(table.steps()[0].learners, 1);
  EXPECT_EQ(table.steps()[1].step_seconds, 1);
}

TEST(StepTable, NoiseIsNoNews) {
  std::mt19937 random(7);
  StepTable table;
  table.Add(StepOf(1, 1));
  for (int count = 0; count < 10'000; ++count) {
    const double noise = static_cast<double>(random() % 2001) / 1000 - 1;  // from -1 to 1
    ASSERT_FALSE(table.Add(StepOf(1, 1 + 0.09 * noise))) << count;
  }
  EXPECT_EQ(table.steps().front().step_seconds, 1);
}

TEST(StepTable, AStepThatBecomesSlowerIsNewsOnce) {
  StepTable table;
  table.Add(StepOf(1, 1));
  int news = 0;
  for (int count = 0; count < 100; ++count) news += table.Add(StepOf(1, 1.15)) ? 1 : 0;
  EXPECT_EQ(news, 1);
  EXPECT_NEAR(table.steps().front().step_seconds, 1.1, 0.05);
}

TEST(StepTable, ManySizesAreBounded) {
  StepTable table;
  for (int learners = 1; learners <= 1000; ++learners) {
    table.Add(StepOf(learners, 1));
    table.Add(StepOf(1, 1));
  }
  EXPECT_EQ(table.steps().size(), StepTable::kMaxSizes);
  EXPECT_EQ(table.steps().front().learners, 1) << "it was measured lately";
  EXPECT_EQ(table.steps().back().learners, 1000);
}

}  // namespace
}  // namespace pliant::speed
