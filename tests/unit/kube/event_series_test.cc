#include "operator/kube/event_series.h"

#include <format>

#include <gtest/gtest.h>

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;
using Action = EventSeries::Action;

const TimePoint kStart{1000s};

EventNote Note(const std::string& text, const std::string& uid = "u1") {
  return {.regarding = {kPods, {.key = {"a", "p"}, .uid = uid}},
          .type = EventType::kNormal,
          .reason = "Resized",
          .action = "Plan",
          .note = text};
}

class EventSeriesTest : public testing::Test {
 protected:
  EventSeries series_{{}, 100};
};

TEST_F(EventSeriesTest, ARepetitionCountsAndIsWrittenNowAndThen) {
  const EventSeries::Decision first = series_.OnNote(Note("x"), kStart);
  EXPECT_EQ(first.action, Action::kCreate);
  EXPECT_EQ(first.id, 100u);
  const EventSeries::Decision second = series_.OnNote(Note("x"), kStart + 1s);
  EXPECT_EQ(second.action, Action::kUpdateSeries);
  EXPECT_EQ(second.id, 100u);
  EXPECT_EQ(second.count, 2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(series_.OnNote(Note("x"), kStart + 2s).action, Action::kNothing);
  }
  EXPECT_TRUE(series_.Flush(kStart + 60s).empty());
  const auto due = series_.Flush(kStart + 61s);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].count, 12);
  EXPECT_TRUE(series_.Flush(kStart + 5min).empty()) << "nothing new to write";
}

TEST_F(EventSeriesTest, AfterAQuietTimeItBeginsAnew) {
  series_.OnNote(Note("x"), kStart);
  EXPECT_EQ(series_.OnNote(Note("x"), kStart + 359s).action, Action::kUpdateSeries);
  const EventSeries::Decision anew = series_.OnNote(Note("x"), kStart + 359s + 360s);
  EXPECT_EQ(anew.action, Action::kCreate);
  EXPECT_EQ(anew.id, 101u);
}

TEST_F(EventSeriesTest, TheLastCountOfAnEndedSeriesIsWritten) {
  series_.OnNote(Note("x"), kStart);
  series_.OnNote(Note("x"), kStart + 1s);
  series_.OnNote(Note("x"), kStart + 2s);
  const auto due = series_.Flush(kStart + 1h);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].count, 3);
}

TEST_F(EventSeriesTest, WhatDiffersIsAnotherEvent) {
  series_.OnNote(Note("4 to 8"), kStart);
  EXPECT_EQ(series_.OnNote(Note("8 to 4"), kStart).action, Action::kCreate);
  EXPECT_EQ(series_.OnNote(Note("4 to 8", "u2"), kStart).action, Action::kCreate);
}

TEST_F(EventSeriesTest, OneNoisyObjectIsLimitedAndHarmsNoOther) {
  int created = 0;
  for (int i = 0; i < 100; ++i) {
    created += series_.OnNote(Note(std::to_string(i)), kStart).action == Action::kCreate ? 1 : 0;
  }
  EXPECT_EQ(created, 25);
  EXPECT_EQ(series_.OnNote(Note("x", "u2"), kStart).action, Action::kCreate);
  series_.Flush(kStart + 299s);
  EXPECT_EQ(series_.OnNote(Note("later"), kStart + 299s).action, Action::kDrop);
  EXPECT_EQ(series_.OnNote(Note("later"), kStart + 301s).action, Action::kCreate);
}

TEST_F(EventSeriesTest, FollowsABoundedNumberOfSeries) {
  EventSeries series({.burst_per_object = 1000, .series_max = 3}, 1);
  for (int i = 0; i < 5; ++i) series.OnNote(Note(std::to_string(i)), kStart + i * 1s);
  EXPECT_EQ(series.OnNote(Note("4"), kStart + 10s).action, Action::kUpdateSeries);
  EXPECT_EQ(series.OnNote(Note("0"), kStart + 10s).action, Action::kCreate) << "forgotten";
}

// Every job that came and went had events.
TEST_F(EventSeriesTest, FollowsTheRatesOfABoundedNumberOfObjects) {
  EventSeries series({.burst_per_object = 1, .objects_max = 10}, 1);
  const auto may_create = [&](const std::string& uid, const std::string& text) {
    return series.OnNote(Note(text, uid), kStart).action == Action::kCreate;
  };
  ASSERT_TRUE(may_create("noisy", "a"));
  ASSERT_TRUE(may_create("quiet", "a"));
  for (int i = 0; i < 100; ++i) {
    may_create(std::format("other {}", i), "a");
    ASSERT_FALSE(may_create("noisy", std::format("b {}", i))) << "who goes on is not forgotten";
  }
  EXPECT_TRUE(may_create("quiet", "b")) << "forgotten";
}

}  // namespace
}  // namespace pliant::kube
