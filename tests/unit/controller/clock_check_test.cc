#include "operator/controller/process/clock_check.h"

#include <chrono>

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {

using namespace std::chrono_literals;

constexpr const char* kDate = "Sun, 22 Nov 2026 10:00:00 GMT";

struct ClockCase {
  const char* what;
  std::chrono::milliseconds past_date;  // this clock's time, relative to `kDate`
  Duration took;
  std::chrono::milliseconds ahead;
  bool agrees;
};

TEST(ClockCheck, ComparesWithWhatTheServerTells) {
  const ClockCase cases[] = {
      {"the same second", 400ms, 10ms, 0ms, true}, {"the answer took its time", 4s, 4s, 0ms, true},
      {"a little ahead", 11s, 0ms, 10s, true},     {"a little behind", -10s, 0ms, -10s, true},
      {"an hour ahead", 1h, 1s, 1h - 2s, false},   {"an hour behind", -1h, 1s, -1h, false},
  };
  const api::WallTime date = *api::ParseHttpDate(kDate);
  for (const ClockCase& c : cases) {
    SCOPED_TRACE(c.what);
    ClockCheck check([&] { return date + c.past_date; });
    EXPECT_TRUE(check.Agrees()) << "before the first answer";
    check.OnDate(kDate, c.took);
    EXPECT_EQ(check.ahead(), c.ahead);
    EXPECT_EQ(check.Agrees(), c.agrees);
  }
}

TEST(ClockCheck, TheLastAnswerCounts) {
  const api::WallTime date = *api::ParseHttpDate(kDate);
  api::WallTime now = date + 1h;
  ClockCheck check([&] { return now; });
  check.OnDate(kDate, 0s);
  check.OnDate("", 0s);
  check.OnDate("Tuesday", 0s);
  EXPECT_FALSE(check.Agrees()) << "an unreadable date changes nothing";
  now = date;
  check.OnDate(kDate, 0s);
  EXPECT_TRUE(check.Agrees());
}

}  // namespace
}  // namespace pliant::controller
