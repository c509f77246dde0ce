#include "trainer/learner/progress.h"

#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

using namespace std::chrono_literals;

TEST(Progress, GathersWhatTheMetricsSay) {
  Progress progress(3);
  EXPECT_EQ(progress.StatusLine(), "epoch 1/3  step 0/0  [>                   ]");
  EXPECT_EQ(progress.seconds_left(), std::nullopt);
  progress.OnMetricsLine(
      R"({"kind": "train", "step": 100, "totalSteps": 300, "batchSize": 64, "epoch": 0,)"
      R"( "loss": 1.23456, "accuracy": 0.5, "samplesPerSecond": 128.0})");
  EXPECT_EQ(progress.StatusLine(),
            "epoch 1/3  step 100/300  [======>             ]  loss 1.2346  accuracy 50.0 %  "
            "128 samples/s  1:40 left");
  progress.OnMetricsLine(R"({"kind": "test", "step": 100, "epoch": 0, "accuracy": 0.625})");
  EXPECT_EQ(progress.test_accuracy(), 0.625);
  EXPECT_EQ(progress.loss(), 1.23456) << "an evaluation does not change the training statistics";
  // A loss that is not finite is omitted from the line.
  progress.OnMetricsLine(
      R"({"kind": "train", "step": 300, "epoch": 2, "accuracy": 0.75, "samplesPerSecond": 1.5})");
  EXPECT_EQ(progress.StatusLine(),
            "epoch 3/3  step 300/300  [====================]  accuracy 75.0 %  test 62.5 %  "
            "2 samples/s  0:00 left");
}

TEST(Progress, ALargerBatchLeavesFewerSteps) {
  Progress progress(2);
  progress.OnMetricsLine(
      R"({"kind": "train", "step": 100, "totalSteps": 150, "batchSize": 128, "epoch": 1,)"
      R"( "samplesPerSecond": 64})");
  EXPECT_EQ(progress.StatusLine(),
            "epoch 2/2  step 100/150  [=============>      ]  64 samples/s  1:40 left");
}

TEST(Progress, LongTimesHaveHours) {
  Progress progress(1);
  progress.OnMetricsLine(
      R"({"kind": "train", "step": 1, "totalSteps": 3601, "batchSize": 1, "epoch": 0,)"
      R"( "samplesPerSecond": 0.5})");
  EXPECT_TRUE(progress.StatusLine().ends_with("2:00:00 left")) << progress.StatusLine();
}

TEST(Progress, IgnoresLinesThatAreNoMetrics) {
  Progress progress(1);
  for (const char* line : {"", "{", "[]", "7"}) progress.OnMetricsLine(line);
  EXPECT_EQ(progress.step(), 0U);
}

TEST(Pace, IsDueAtOnceAndThenEverySoOften) {
  Pace pace(10s);
  EXPECT_TRUE(pace.Due(TimePoint(5s)));
  EXPECT_FALSE(pace.Due(TimePoint(14s)));
  EXPECT_TRUE(pace.Due(TimePoint(15s)));
  EXPECT_FALSE(pace.Due(TimePoint(24s)));
  Pace never(0s);
  EXPECT_FALSE(never.Due(TimePoint(5s)));
}

}  // namespace
}  // namespace pliant::learner
