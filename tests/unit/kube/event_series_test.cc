#include "operator/kube/event_series.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/kube/start.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;
using SeriesAction = EventSeries::Action;

EventNote NoteOf(const std::string& text, const std::string& uid = "u1") {
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
  const EventSeries::Decision first = series_.OnNote(NoteOf("x"), kStart);
  EXPECT_EQ(first.action, SeriesAction::kCreate);
  EXPECT_EQ(first.id, 100u);
  const EventSeries::Decision second = series_.OnNote(NoteOf("x"), kStart + 1s);
  EXPECT_EQ(second.action, SeriesAction::kUpdateSeries);
  EXPECT_EQ(second.id, 100u);
  EXPECT_EQ(second.count, 2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(series_.OnNote(NoteOf("x"), kStart + 2s).action, SeriesAction::kNothing);
  }
  EXPECT_TRUE(series_.Flush(kStart + 60s).empty());
  const auto due = series_.Flush(kStart + 61s);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].count, 12);
  EXPECT_TRUE(series_.Flush(kStart + 5min).empty()) << "nothing new to write";
}

TEST_F(EventSeriesTest, BeginsAgainAfterAQuietTime) {
  series_.OnNote(NoteOf("x"), kStart);
  EXPECT_EQ(series_.OnNote(NoteOf("x"), kStart + 359s).action, SeriesAction::kUpdateSeries);
  const EventSeries::Decision anew = series_.OnNote(NoteOf("x"), kStart + 359s + 360s);
  EXPECT_EQ(anew.action, SeriesAction::kCreate);
  EXPECT_EQ(anew.id, 101u);
}

TEST_F(EventSeriesTest, TheLastCountOfAnEndedSeriesIsWritten) {
  series_.OnNote(NoteOf("x"), kStart);
  series_.OnNote(NoteOf("x"), kStart + 1s);
  series_.OnNote(NoteOf("x"), kStart + 2s);
  const auto due = series_.Flush(kStart + 1h);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].count, 3);
}

TEST_F(EventSeriesTest, AnotherNoteOrObjectIsAnotherEvent) {
  series_.OnNote(NoteOf("4 to 8"), kStart);
  EXPECT_EQ(series_.OnNote(NoteOf("8 to 4"), kStart).action, SeriesAction::kCreate);
  EXPECT_EQ(series_.OnNote(NoteOf("4 to 8", "u2"), kStart).action, SeriesAction::kCreate);
}

TEST_F(EventSeriesTest, OneNoisyObjectIsLimitedAndHarmsNoOther) {
  int created = 0;
  for (int i = 0; i < 100; ++i) {
    created +=
        series_.OnNote(NoteOf(std::to_string(i)), kStart).action == SeriesAction::kCreate ? 1 : 0;
  }
  EXPECT_EQ(created, 25);
  EXPECT_EQ(series_.OnNote(NoteOf("x", "u2"), kStart).action, SeriesAction::kCreate);
  series_.Flush(kStart + 299s);
  EXPECT_EQ(series_.OnNote(NoteOf("later"), kStart + 299s).action, SeriesAction::kDrop);
  EXPECT_EQ(series_.OnNote(NoteOf("later"), kStart + 301s).action, SeriesAction::kCreate);
}

TEST_F(EventSeriesTest, FollowsABoundedNumberOfSeries) {
  EventSeries series({.burst_per_object = 1000, .max_series = 3}, 1);
  for (int i = 0; i < 5; ++i) series.OnNote(NoteOf(std::to_string(i)), kStart + i * 1s);
  EXPECT_EQ(series.OnNote(NoteOf("4"), kStart + 10s).action, SeriesAction::kUpdateSeries);
  EXPECT_EQ(series.OnNote(NoteOf("0"), kStart + 10s).action, SeriesAction::kCreate)
      << "its series was dropped";
}

// Objects of all past jobs had events, so the number of followed objects must be bounded.
TEST_F(EventSeriesTest, FollowsTheRatesOfABoundedNumberOfObjects) {
  EventSeries series({.burst_per_object = 1, .max_objects = 10}, 1);
  const auto may_create = [&](const std::string& uid, const std::string& text) {
    return series.OnNote(NoteOf(text, uid), kStart).action == SeriesAction::kCreate;
  };
  ASSERT_TRUE(may_create("noisy", "a"));
  ASSERT_TRUE(may_create("quiet", "a"));
  for (int i = 0; i < 100; ++i) {
    may_create(Format("other {}", i), "a");
    ASSERT_FALSE(may_create("noisy", Format("b {}", i))) << "an active object is not dropped";
  }
  EXPECT_TRUE(may_create("quiet", "b")) << "an idle object is dropped";
}

}  // namespace
}  // namespace pliant::kube
