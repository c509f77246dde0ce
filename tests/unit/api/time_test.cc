#include "operator/api/time.h"

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Time, ReadsRfc3339) {
  EXPECT_EQ(ParseTime("1970-01-01T00:00:10Z"), WallTime(seconds(10)));
  EXPECT_EQ(ParseTime("2026-03-01T12:00:00Z"), WallTime(seconds(1772366400)));
  EXPECT_EQ(ParseTime("1970-01-01T00:00:00.123456Z"), WallTime(milliseconds(123)));
  EXPECT_EQ(ParseTime("1970-01-01T02:00:00+02:00"), WallTime());
  EXPECT_EQ(ParseTime("1969-12-31T23:30:00-00:30"), WallTime());
}

TEST(Time, RefusesOtherTexts) {
  for (const char* text : {"", "2026-03-01", "2026-02-30T00:00:00Z", "2026-03-01T25:00:00Z",
                           "2026-03-01T00:00:00", "2026-03-01T00:00:00Zx", "x026-03-01T00:00:00Z",
                           "2026-03-01T00:00:00+1", "+026-03-01T00:00:00Z"}) {
    EXPECT_FALSE(ParseTime(text)) << text;
  }
}

TEST(Time, ReadsTheDateOfAnHttpAnswer) {
  EXPECT_EQ(ParseHttpDate("Thu, 01 Jan 1970 00:00:10 GMT"), WallTime(seconds(10)));
  EXPECT_EQ(ParseHttpDate("Sun, 01 Mar 2026 12:00:00 GMT"), WallTime(seconds(1772366400)));
  for (const char* text : {"", "Sun", "Sun, 01 Mar 2026 12:00:00", "Sun, 01 xMar 2026 12:00:00 GMT",
                           "Sun, 01 anF 2026 12:00:00 GMT", "Sun, 30 Feb 2026 12:00:00 GMT",
                           "Sun, 01 Mar 2026 25:00:00 GMT", "Sunday, 01-Mar-26 12:00:00 GMT",
                           "Sun, 01 Mar 2026 12:00:00 GMT ", "Sun, 01 Mar"}) {
    EXPECT_FALSE(ParseHttpDate(text)) << text;
  }
}

TEST(Time, FromUnixSecondsStaysWithinWhatCanBeWritten) {
  EXPECT_EQ(FromUnixSeconds(1.5), WallTime(milliseconds(1500)));
  EXPECT_EQ(FromUnixSeconds(-1), WallTime());
  for (const double late : {253'402'300'799.0, 1e18, 1e300}) {
    EXPECT_EQ(FormatTime(FromUnixSeconds(late)), "9999-12-31T23:59:59Z") << late;
  }
}

TEST(Time, WritesWholeSecondsThatReadBack) {
  const WallTime time(seconds(1772366400) + milliseconds(999));
  EXPECT_EQ(FormatTime(time), "2026-03-01T12:00:00Z");
  EXPECT_EQ(ParseTime(FormatTime(time)), WallTime(seconds(1772366400)));
}

}  // namespace
}  // namespace pliant::api
