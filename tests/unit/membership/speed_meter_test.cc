#include "trainer/membership/speed_meter.h"

#include <chrono>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace pliant {
namespace {

using namespace std::chrono_literals;

TimePoint At(Duration time) { return TimePoint{} + time; }

TEST(SpeedMeter, TheTimeAfterAnOpeningDoesNotCount) {
  SpeedMeter meter;
  meter.OnReport(10, 100, 1, At(0s));
  EXPECT_EQ(meter.speed(), std::nullopt) << "no membership is open";
  meter.Begin(At(10s));
  meter.OnReport(20, 1, 1, At(11s));
  meter.OnReport(30, 1, 1, At(11900ms));
  EXPECT_EQ(meter.speed(), std::nullopt) << "two seconds";
  meter.OnReport(31, 100, 1, At(13s));
  ASSERT_TRUE(meter.speed().has_value());
  EXPECT_EQ(meter.speed()->samples_per_second, 100);
  EXPECT_EQ(meter.speed()->seconds, 1);

  meter.Begin(At(20s));
  meter.OnReport(100, 1, 1, At(30s));
  meter.OnReport(104, 1, 1, At(40s));
  EXPECT_EQ(meter.speed(), std::nullopt) << "five steps";
  meter.OnReport(105, 50, 2, At(50s));
  EXPECT_EQ(meter.speed(), (SteadySpeed{50, 2, 28}));
  meter.End();
  EXPECT_EQ(meter.speed(), std::nullopt);
  meter.OnReport(200, 70, 2, At(60s));
  EXPECT_EQ(meter.speed(), std::nullopt);
}

TEST(SpeedMeter, ABatchThatChangesBeginsAnotherMeasurement) {
  SpeedMeter meter;
  meter.OnBatch(64, At(0s));
  meter.Begin(At(0s));
  meter.OnBatch(128, At(1s));
  meter.OnReport(0, 1, 1, At(1s));
  meter.OnBatch(128, At(3s));
  meter.OnReport(10, 100, 1, At(3s));
  EXPECT_EQ(meter.speed(), (SteadySpeed{100, 1, 1})) << "the first one, and the same one";
  meter.OnBatch(256, At(4s));
  EXPECT_EQ(meter.speed(), std::nullopt);
  meter.OnReport(20, 150, 1, At(4s));
  meter.OnReport(30, 150, 1, At(5s));
  meter.OnReport(24, 150, 1, At(7s));
  EXPECT_EQ(meter.speed(), std::nullopt) << "it settles: two seconds, and five steps";
  meter.OnReport(31, 180, 2, At(8s));
  EXPECT_EQ(meter.speed(), (SteadySpeed{180, 2, 2}));
}

TEST(SpeedMeter, ReportsOfTheSameStepCountOnce) {
  SpeedMeter meter;
  meter.Begin(At(0s));
  meter.OnReport(0, 1, 1, At(1s));
  meter.OnReport(10, 100, 1, At(3s));
  for (int count = 0; count < 100; ++count) meter.OnReport(10, 100, 1, At(4s));
  meter.OnReport(20, 200, 3, At(5s));
  EXPECT_EQ(meter.speed(), (SteadySpeed{150, 2, 3}));
}

TEST(SpeedMeter, ItFollowsASpeedThatChanges) {
  SpeedMeter meter;
  meter.Begin(At(0s));
  std::uint64_t step = 0;
  const auto report = [&](int count, double speed) {
    for (; count > 0; --count) {
      ++step;
      meter.OnReport(step, speed, 1, At(std::chrono::seconds(10 + step)));
    }
  };
  report(1000, 100);
  EXPECT_NEAR(meter.speed()->samples_per_second, 100, 1e-9);
  report(300, 50);
  EXPECT_NEAR(meter.speed()->samples_per_second, 50, 1);
}

// The numbers come from a tenant's program.
TEST(SpeedMeter, IgnoresImpossibleReports) {
  SpeedMeter meter;
  meter.Begin(At(0s));
  std::uint64_t step = 10;
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, inf, -inf, std::nan("")}) {
    meter.OnReport(++step, bad, 1, At(100s));
    meter.OnReport(++step, 1, bad, At(100s));
  }
  EXPECT_EQ(meter.speed(), std::nullopt);
}

}  // namespace
}  // namespace pliant
