#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/report/gpu_time.h"
#include "simulator/report/gpus_plot.h"
#include "simulator/report/markup.h"
#include "simulator/report/svg.h"
#include "tests/unit/simulator/report_records.h"

namespace pliant::simulator {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
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

TEST(GpuTimeTest, AStepHasTheMean) {
  const RunRecord run = ThreeJobs();
  const TimeSteps steps = StepsOf(run, 3);  // of 33.334 s; the last is shorter
  EXPECT_EQ(steps, (TimeSteps{.begin = 0, .end = 100'000, .length = 33'334, .count = 3}));
  const TimeSteps four = StepsOf(run, 4);
  std::vector<double> gpus(4);
  AddMeanGpus(HoldingsOf(run, run.jobs[0]), four, gpus);
  EXPECT_THAT(gpus, ElementsAre(4, DoubleNear(2.4, 1e-12), 0, 0));
  AddMeanGpus(HoldingsOf(run, run.jobs[1]), four, gpus);
  EXPECT_THAT(gpus, testing::Each(DoubleNear(4, 1e-12)));
}

TEST(GpuTimeTest, AnEmptySpanHasNoSteps) {
  EXPECT_EQ(StepsOf({.end = 5}, 10).count, 0U);
  EXPECT_EQ(StepsOf(CompletedAfter("p", "w", {0}), 10).count, 0U);
  EXPECT_EQ(StepsOf(ThreeJobs(), 0).count, 0U);
}

TEST(AxisTest, TicksAreRound) {
  EXPECT_THAT(Labels(NumberTicks(64, 8)), ElementsAre("0", "10", "20", "30", "40", "50", "60"));
  EXPECT_THAT(Labels(NumberTicks(0.5, 5)), ElementsAre("0.0", "0.1", "0.2", "0.3", "0.4", "0.5"));
  EXPECT_THAT(Labels(NumberTicks(0, 5)), ElementsAre("0"));
  EXPECT_THAT(Labels(TimeTicks(100, 5)),
              ElementsAre("0 s", "20 s", "40 s", "60 s", "80 s", "100 s"));
  EXPECT_THAT(Labels(TimeTicks(9 * 3600, 5)), ElementsAre("0 h", "2 h", "4 h", "6 h", "8 h"));
  EXPECT_THAT(Labels(TimeTicks(3 * 86400, 12)), ElementsAre("0 d", "1 d", "2 d", "3 d"));
}

TEST(AxisTest, LogarithmicTicksAreTimes) {
  const LogSeconds axis(50, 40'000);
  EXPECT_THAT(Labels(axis.Ticks()), ElementsAre("1 min", "10 min", "1 h", "10 h"));
  EXPECT_EQ(axis.PartOf(0), 0);
  EXPECT_EQ(axis.PartOf(40'000), 1);
  EXPECT_THAT(Labels(LogSeconds(100, 100).Ticks()), ElementsAre("100 s", "5.3 min"));
}

TEST(ApplicationColoursTest, SixHaveTheirOwn) {
  const ApplicationColours colours({"h", "b", "", "b", "c", "d", "e", "f", "g"});
  EXPECT_THAT(colours.names(),
              ElementsAre("unknown", "b", "c", "d", "e", "f", "2 other applications"));
  EXPECT_EQ(colours.Of(""), 0U);
  EXPECT_EQ(colours.Of("f"), 5U);
  EXPECT_EQ(colours.Of("h"), 6U);
}

TEST(GpusPlotTest, BandsAreStacked) {
  const std::string plot = GpusPlot(ThreeJobs(), ApplicationColours({"bert", "cifar10", ""}), 10);
  EXPECT_EQ(WrongInXml(plot), "");
  // Ten steps of 88 px, 60 px a GPU, in tenths: 4 GPUs for 3 steps, then 2 for 2 steps.
  EXPECT_THAT(plot, HasSubstr(" d=\"M0 2400v-2400h2640v1200h1760v1200h-4400Z\">"
                              "<title>a (cifar10), 0.0 GPU h</title>"));
  EXPECT_THAT(plot, HasSubstr(" d=\"M2640 1200v-1200h6160v2400h-4400v-1200h-1760Z\">"
                              "<title>b (bert), 0.1 GPU h</title>"));
  EXPECT_THAT(plot, HasSubstr(">time since the first submission</text>"));
}

TEST(GpusPlotTest, ManyJobsHaveABandForEachColour) {
  const RunRecord run = BusyRun("p", static_cast<int>(kMaxBands) + 1, 0.5);
  std::vector<std::string> applications;
  for (const JobRecord& job : run.jobs) applications.push_back(job.application);
  const std::string plot = GpusPlot(run, ApplicationColours(applications), 400);
  EXPECT_THAT(plot, HasSubstr("<title>application-5</title>"));
  EXPECT_THAT(plot, testing::Not(HasSubstr("job-1")));
  EXPECT_LT(plot.size(), 100'000U);
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
