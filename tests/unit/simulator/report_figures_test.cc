#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/report/distribution.h"
#include "simulator/report/figures.h"
#include "tests/unit/simulator/report_records.h"

namespace pliant::simulator {
namespace {

// Job 0 takes 25 s on its 3 GPUs, job 1 takes 160 s on its 2.
std::optional<double> Isolated(std::size_t job, int gpus) {
  if (job == 0 && gpus == 3) return 25;
  if (job == 1 && gpus == 2) return 160;
  return std::nullopt;
}

std::vector<double> UpTo(int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.rbegin(), values.rend(), 1.0);
  return values;
}

TEST(DistributionTest, PercentilesAreNearestRanks) {
  struct Case {
    std::vector<double> values;
    Distribution want;
  };
  const Case kCases[] = {
      {{7}, {.count = 1, .mean = 7, .p50 = 7, .p90 = 7, .p99 = 7, .max = 7}},
      {{2, 1}, {.count = 2, .mean = 1.5, .p50 = 1, .p90 = 2, .p99 = 2, .max = 2}},
      {{3, 1, 2}, {.count = 3, .mean = 2, .p50 = 2, .p90 = 3, .p99 = 3, .max = 3}},
      {UpTo(10), {.count = 10, .mean = 5.5, .p50 = 5, .p90 = 9, .p99 = 10, .max = 10}},
      {UpTo(100), {.count = 100, .mean = 50.5, .p50 = 50, .p90 = 90, .p99 = 99, .max = 100}},
      {UpTo(101), {.count = 101, .mean = 51, .p50 = 51, .p90 = 91, .p99 = 100, .max = 101}},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(DistributionOf(each.values), each.want) << each.values.size();
  }
  EXPECT_EQ(DistributionOf({}), std::nullopt);
}

TEST(FiguresTest, OneJobAfterAnother) {
  const std::vector<JobFigures> jobs = FiguresOfJobs(ThreeJobs(), Isolated);
  ASSERT_EQ(jobs.size(), 3U);
  // Job b was present in 30 s of the 50 s of job a: N = 80 / 50, and 4 / 1.6 = 2.5.
  EXPECT_EQ(jobs[0], (JobFigures{.completion_seconds = 50,
                                 .queueing_seconds = 10,
                                 .rho = 2,
                                 .mean_present = 1.6,
                                 .share_gpus = 3,
                                 .missed_deadline = true}));
  // Job a was present in 30 s of the 80 s of job b, and job c in 40 s.
  EXPECT_EQ(jobs[1], (JobFigures{.completion_seconds = 80,
                                 .queueing_seconds = 20,
                                 .rho = 0.5,
                                 .mean_present = 1.875,
                                 .share_gpus = 2}));
  EXPECT_EQ(jobs[2], (JobFigures{.missed_deadline = true}));
}

TEST(FiguresTest, SummarizeTheRun) {
  const RunRecord run = ThreeJobs();
  const Figures want{
      .jobs = 3,
      .started = 2,
      .completed = 2,
      .completion_seconds =
          Distribution{.count = 2, .mean = 65, .p50 = 50, .p90 = 80, .p99 = 80, .max = 80},
      .rho = Distribution{.count = 2, .mean = 1.25, .p50 = 0.5, .p90 = 2, .p99 = 2, .max = 2},
      .allocated_share = 1,
      .useful_share = 0.8,
      .queueing_seconds = 15,
      .resizes_per_job = 2.0 / 3,
      .moves_per_job = 1.0 / 3,
      .deadlines = 3,
      .missed_deadlines = 2,
      .lost_seconds = 3};
  EXPECT_EQ(FiguresOf(run, FiguresOfJobs(run, Isolated)), want);
}

TEST(FiguresTest, TheMakespanEndsWithTheLastCompletion) {
  RunRecord run = ThreeJobs();
  run.jobs.pop_back();
  run.jobs.erase(run.jobs.begin());
  run.end = 200'000;
  const Figures figures = FiguresOf(run, FiguresOfJobs(run, {}));
  EXPECT_EQ(figures.makespan_seconds, 80);
  EXPECT_EQ(figures.allocated_share, 240.0 / (4 * 180));
  EXPECT_EQ(figures.rho, std::nullopt);
}

TEST(FiguresTest, ADeadlineAfterTheEndIsNotMissed) {
  RunRecord run = ThreeJobs();
  run.jobs[2].deadline = run.end;
  EXPECT_FALSE(FiguresOfJobs(run, {})[2].missed_deadline);
}

TEST(FiguresTest, AreEmptyForARunThatCompletedNothing) {
  const RunRecord empty{.policy = "p", .workload = "w", .gpus = 4, .end = 60'000};
  EXPECT_EQ(FiguresOf(empty, FiguresOfJobs(empty, Isolated)), Figures{});

  RunRecord none_ended = ThreeJobs();
  for (JobRecord& job : none_ended.jobs) job.completed.reset();
  const Figures figures = FiguresOf(none_ended, FiguresOfJobs(none_ended, Isolated));
  EXPECT_EQ(figures.completed, 0U);
  EXPECT_EQ(figures.completion_seconds, std::nullopt);
  EXPECT_EQ(figures.rho, std::nullopt);
  EXPECT_EQ(figures.makespan_seconds, std::nullopt);
  EXPECT_EQ(figures.missed_deadlines, 2U);
}

TEST(FiguresTest, AJobThatTakesNoTimeHasNoRho) {
  RunRecord run = CompletedAfter("p", "w", {0});
  EXPECT_EQ(FiguresOfJobs(run, [](std::size_t, int) { return std::optional<double>(1); })[0],
            (JobFigures{.completion_seconds = 0, .queueing_seconds = 0}));
}

}  // namespace
}  // namespace pliant::simulator
