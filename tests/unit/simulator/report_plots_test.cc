#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/report/gpu_time.h"
#include "simulator/report/markup.h"
#include "simulator/report/svg.h"
#include "tests/unit/simulator/report_records.h"

namespace pliant::simulator {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::string> Labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> labels;
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

TEST(GpuTimeTest, HoldingsEndWithTheJob) {
  const RunRecord run = ThreeJobs();
  EXPECT_THAT(HoldingsOf(run, run.jobs[0]),
              ElementsAre(Holding{0, 30'000, 4}, Holding{30'000, 50'000, 2}));
  JobRecord open = run.jobs[1];
  open.completed.reset();
  open.sizes.pop_back();
  EXPECT_THAT(HoldingsOf(run, open),
              ElementsAre(Holding{30'000, 50'000, 2}, Holding{50'000, 100'000, 4}));
  EXPECT_THAT(HoldingsOf(run, run.jobs[2]), ElementsAre());
}

TEST(GpuTimeTest, GpuSecondsBySize) {
  EXPECT_THAT(GpuSecondsBySize(ThreeJobs()), ElementsAre(Pair(2, 80), Pair(4, 320)));
}

TEST(GpuTimeTest, TheSpanBeginsWithTheFirstSubmission) {
  RunRecord run = ThreeJobs();
  EXPECT_EQ(SpanOf(run), 100'000);
  run.jobs.erase(run.jobs.begin());
  EXPECT_EQ(SpanOf(run), 80'000);
  EXPECT_EQ(SpanOf({.end = 5}), 0);
}

TEST(AxisTest, TicksAreRound) {
  EXPECT_THAT(Labels(NumberTicks(64, 8)), ElementsAre("0", "10", "20", "30", "40", "50", "60"));
  EXPECT_THAT(Labels(NumberTicks(0.5, 5)), ElementsAre("0.0", "0.1", "0.2", "0.3", "0.4", "0.5"));
  EXPECT_THAT(Labels(NumberTicks(0, 5)), ElementsAre("0"));
}

TEST(AxisTest, LogarithmicTicksAreTimes) {
  const LogSeconds axis(50, 40'000);
  EXPECT_THAT(Labels(axis.Ticks()), ElementsAre("1 min", "10 min", "1 h", "10 h"));
  EXPECT_EQ(axis.PartOf(0), 0);
  EXPECT_EQ(axis.PartOf(40'000), 1);
  EXPECT_THAT(Labels(LogSeconds(100, 100).Ticks()), ElementsAre("100 s", "5.3 min"));
}

TEST(MarkupTest, NumbersAndNames) {
  EXPECT_EQ(Fixed(-0.04, 1), "0.0");
  EXPECT_EQ(Fixed(1234567.25, 1), "1234567.2");
  EXPECT_EQ(ShownName("abcdef", 6), "abcdef");
  EXPECT_EQ(ShownName("abcdefg", 6), "abcdef...");
  EXPECT_EQ(ShownName("a\nb\x7f\xff", 20),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(Escaped("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
  EXPECT_EQ(ShownName(std::string(1'000'000, 'x'), 3), "xxx...");
}

}  // namespace
}  // namespace pliant::simulator
