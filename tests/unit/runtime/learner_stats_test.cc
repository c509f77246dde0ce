#include "trainer/runtime/learner_stats.h"

#include <gtest/gtest.h>

#include "trainer/runtime/tick_stopwatch.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LearnerStats kThen{.ticks = 10,
                             .shards = 40,
                             .computing = seconds(5),
                             .data_waiting = seconds(1),
                             .waiting = seconds(2),
                             .committing = seconds(3),
                             .bytes_sent = 1000,
                             .bytes_received = 500};

TEST(MeanTimes, AreOfTheTicksSinceThen) {
  LearnerStats now = kThen;
  EXPECT_EQ(MeanTimes(kThen, now), std::nullopt) << "there were none";
  now.shards = 44;
  EXPECT_EQ(MeanTimes(kThen, now), std::nullopt);
  now.ticks = 12;
  now.shards = 48;
  now.computing = seconds(9);
  now.data_waiting = seconds(2);
  now.waiting = seconds(8);
  now.committing = seconds(4);
  now.bytes_sent = 1200;
  now.bytes_received = 504;
  EXPECT_EQ(MeanTimes(kThen, now), (TickTimes{.shard_seconds = 0.5,
                                              .compute_seconds = 2,
                                              .data_wait_seconds = 0.5,
                                              .wait_seconds = 3,
                                              .commit_seconds = 0.5,
                                              .sent_bytes = 100,
                                              .received_bytes = 2}));
}

TEST(MeanTimes, AreEmptyWithoutAShard) {
  LearnerStats now = kThen;
  ++now.ticks;
  EXPECT_EQ(MeanTimes(kThen, now), TickTimes{});
}

TEST(TickStopwatch, TellsWhereTheTimeOfATickWent) {
  const TimePoint began{seconds(100)};
  TickStopwatch stopwatch(began);
  stopwatch.OnComputed(began + seconds(3));
  stopwatch.AddDataWait(milliseconds(250));
  stopwatch.AddDataWait(milliseconds(250));
  stopwatch.OnComplete(began + seconds(5));
  LearnerStats stats = kThen;
  stopwatch.CountInto(stats, began + seconds(9));
  EXPECT_EQ(stats.computing, kThen.computing + seconds(3));
  EXPECT_EQ(stats.data_waiting, kThen.data_waiting + milliseconds(500));
  EXPECT_EQ(stats.waiting, kThen.waiting + seconds(2));
  EXPECT_EQ(stats.committing, kThen.committing + seconds(4));
  EXPECT_EQ(stats.ticks, kThen.ticks) << "another component counts ticks";
}

TEST(TickStopwatch, CountsAllTimeAsWaitingIfNothingIsComputed) {
  const TimePoint began{seconds(100)};
  TickStopwatch stopwatch(began);
  stopwatch.OnComplete(began + seconds(5));
  LearnerStats stats;
  stopwatch.CountInto(stats, began + seconds(5));
  EXPECT_EQ(stats.computing, Duration::zero());
  EXPECT_EQ(stats.waiting, seconds(5));
  EXPECT_EQ(stats.committing, Duration::zero());
}

}  // namespace
}  // namespace pliant
