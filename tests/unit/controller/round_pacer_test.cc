#include "operator/controller/rounds/round_pacer.h"

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {
using namespace std::chrono_literals;

const TimePoint kStart{1000s};

class RoundPacerTest : public testing::Test {
 protected:
  // A round that begins at this time after the start, and lasts this long.
  void Round(Duration at, Duration takes) {
    pacer_.OnRound();
    pacer_.OnRoundDone(kStart + at, kStart + at + takes);
  }
  // When the round is due for a change at this time after the start.
  Duration DueAfter(Duration change) { return pacer_.OnChange(kStart + change) - kStart; }

  RoundPacer pacer_{
      {.debounce = 20ms, .max_debounce = 200ms, .flood_after = 1s, .pauses_in_flood = 3}};
};

TEST_F(RoundPacerTest, AChangeWaitsForItsFellowsButNotForEver) {
  EXPECT_EQ(DueAfter(0ms), 20ms);
  EXPECT_EQ(DueAfter(15ms), 35ms) << "counts from the newest change";
  EXPECT_EQ(DueAfter(190ms), 200ms) << "limited by the first change";
  EXPECT_EQ(DueAfter(300ms), 300ms) << "at once: the limit has passed";
  Round(300ms, 0ms);
  EXPECT_EQ(DueAfter(310ms), 330ms) << "belongs to the next round";
}

TEST_F(RoundPacerTest, AfterALongRoundThereIsAPauseAsLong) {
  Round(0ms, 70ms);
  EXPECT_EQ(DueAfter(75ms), 140ms);
  EXPECT_EQ(DueAfter(130ms), 150ms);
}

TEST_F(RoundPacerTest, OutOfQuietTheLastRoundCostsNothing) {
  Round(0ms, 500ms);
  EXPECT_EQ(DueAfter(2s), 2020ms);
}

TEST_F(RoundPacerTest, InAFloodOfChangesThePausesAreLonger) {
  Duration next = 0ms;
  for (int round = 0; round < 10; ++round) {
    Round(next, 50ms);
    ASSERT_EQ(DueAfter(next + 60ms), next + 100ms) << "round " << round;
    next += 100ms;
  }
  Round(next, 50ms);
  EXPECT_EQ(DueAfter(next + 60ms), next + 200ms) << "the flood has lasted for more than a second";
  next += 200ms;
  Round(next, 20ms);
  EXPECT_EQ(DueAfter(next + 40ms), next + 80ms);
  next += 500ms;
  Round(next, 50ms);
  EXPECT_EQ(DueAfter(next + 60ms), next + 100ms) << "it was quiet in between";
}

TEST_F(RoundPacerTest, OneSlowRoundIsNoFlood) {
  Round(0s, 4s);
  EXPECT_EQ(DueAfter(5s), 8s);
  Round(8s, 600ms);
  EXPECT_EQ(DueAfter(8700ms), 9600ms) << "a second slow round is, but the pause has a limit";
}

}  // namespace
}  // namespace pliant::controller
