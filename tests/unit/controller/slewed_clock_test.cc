#include "operator/controller/process/slewed_clock.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using namespace std::chrono_literals;

TimePoint Steady(double at) {
  return TimePoint{} + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(at));
}

TEST(SlewedClock, ShowsTheMachinesTime) {
  SlewedClock clock;
  for (const double at : {0.0, 0.5, 1.0, 3600.0}) EXPECT_EQ(clock.Now(At(at), Steady(at)), At(at));
}

TEST(SlewedClock, AStepForwardsIsFollowedByAQuarter) {
  SlewedClock clock;
  clock.Now(At(0), Steady(0));
  EXPECT_EQ(clock.Now(At(121), Steady(1)), At(1.25));
  EXPECT_EQ(clock.Now(At(240), Steady(120)), At(150));
  EXPECT_EQ(clock.Now(At(600), Steady(480)), At(600));
  EXPECT_EQ(clock.Now(At(601), Steady(481)), At(601));
}

TEST(SlewedClock, AStepBackNeverTurnsTimeBack) {
  SlewedClock clock;
  clock.Now(At(1000), Steady(0));
  EXPECT_EQ(clock.Now(At(400), Steady(0)), At(1000));
  EXPECT_EQ(clock.Now(At(404), Steady(4)), At(1003));
  EXPECT_EQ(clock.Now(At(401), Steady(1)), At(1003)) << "from another thread, which was late";
  EXPECT_EQ(clock.Now(At(2800), Steady(2400)), At(2800));
}

TEST(SlewedClock, FollowsAStepEvenIfReadOften) {
  SlewedClock clock;
  api::WallTime shown = clock.Now(At(0), Steady(0));
  for (int i = 1; i <= 4'100; ++i) shown = clock.Now(At(1 + i * 0.001), Steady(i * 0.001));
  EXPECT_EQ(shown, At(5.1));
}

TEST(SlewedClock, ReadOftenItLosesNothing) {
  SlewedClock clock;
  api::WallTime shown;
  for (int i = 0; i <= 10'000; ++i) {
    shown = clock.Now(At(i * 0.0005), Steady(i * 0.0005));
  }
  EXPECT_EQ(shown, At(5));
}

}  // namespace
}  // namespace pliant::controller
