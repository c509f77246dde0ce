#include "operator/speed/resize_cost.h"

#include <limits>

#include <gtest/gtest.h>

namespace pliant::speed {
namespace {

TEST(ResizeCost, AMoveMustBeWorthIt) {
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  struct {
    const char* what;
    ResizeCost cost;
    int learners;
    double remaining;
    int percent;
  } const rows[] = {
      {"a live resize with a warm image",
       {.start_seconds = 15, .pause_seconds = 0.1},
       8,
       kNoEnd,
       0},
      {"pods that start slowly", {.start_seconds = 120, .pause_seconds = 0.1}, 8, kNoEnd, 25},
      {"pods that pull a large image", {.start_seconds = 250, .pause_seconds = 1}, 8, kNoEnd, 75},
      {"pods that start for most of the time", {.start_seconds = 400}, 8, kNoEnd, 100},
      {"nothing can be gained", {.start_seconds = 700}, 8, kNoEnd, 100},
      {"long pauses of many learners", {.start_seconds = 15, .pause_seconds = 10}, 16, kNoEnd, 25},
      {"long pauses of few", {.start_seconds = 15, .pause_seconds = 10}, 2, kNoEnd, 0},
      {"the job ends soon", {.start_seconds = 15, .pause_seconds = 0.1}, 8, 60, 25},
      {"the job ends before the newcomer starts", {.start_seconds = 15}, 8, 10, 100},
      {"nothing was measured", {}, 8, kNoEnd, 0},
      {"it is at its end", {}, 8, 0, 100},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(HoldPercent(row.cost, row.learners, row.remaining), row.percent) << row.what;
  }
}

}  // namespace
}  // namespace pliant::speed
