#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/report/figure_kinds.h"
#include "simulator/report/report.h"
#include "simulator/report/sign_test.h"
#include "tests/unit/simulator/report_records.h"

namespace pliant::simulator {
namespace {

MeasuredRun Measured(std::string policy, std::string workload, std::vector<int> seconds) {
  return Measure(CompletedAfter(std::move(policy), std::move(workload), std::move(seconds)), {});
}

std::size_t IndexOf(std::string_view key) {
  std::size_t at = 0;
  while (FigureKinds()[at].key != key) ++at;
  return at;
}

TEST(SignTestTest, IsExact) {
  struct Case {
    int better = 0;
    int worse = 0;
    int ties = 0;
    double p = 0;
    std::string sentence;
  };
  const Case kCases[] = {
      {8, 0, 0, 2.0 / 256, "better in 8 of 8 workloads, p = 0.008"},
      {0, 8, 0, 2.0 / 256, "worse in 8 of 8 workloads, p = 0.008"},
      {7, 1, 0, 18.0 / 256, "better in 7 of 8 workloads, p = 0.070"},
      {5, 3, 0, 186.0 / 256, "better in 5 of 8 workloads, p = 0.727"},
      {4, 4, 0, 1, "better in 4 of 8 workloads, p = 1.000"},
      {5, 0, 3, 2.0 / 32, "better in 5 of 5 workloads (3 equal), p = 0.062"},
      {1, 0, 0, 1, "better in 1 of 1 workload, p = 1.000"},
      {0, 0, 8, 1, "equal in 8 workloads"},
      {0, 0, 0, 1, "equal in 0 workloads"},
      {20, 0, 0, 2.0 / (1 << 20), "better in 20 of 20 workloads, p < 0.001"},
  };
  for (const Case& each : kCases) {
    const SignTest test = TestSigns(each.better, each.worse, each.ties);
    EXPECT_EQ(test.p, each.p) << each.sentence;
    EXPECT_EQ(Sentence(test), each.sentence);
  }
}

TEST(SignTestTest, ManyPairsDoNotOverflow) {
  EXPECT_EQ(TestSigns(5000, 5000, 0).p, 1);
  EXPECT_EQ(TestSigns(5000, 0, 0).p, 0);
  // The normal distribution with the correction for continuity: 2 * (1 - Phi(49.5 / 50)).
  EXPECT_NEAR(TestSigns(5050, 4950, 0).p, 0.3222, 0.0002);
}

TEST(CompareTest, MeansAreThoseOfTheWorkloads) {
  const auto report = Compare("t", {Measured("x", "one", {10, 20}), Measured("x", "two", {60}),
                                    Measured("y", "two", {60}), Measured("y", "one", {20, 20})});
  ASSERT_TRUE(report) << report.error();
  EXPECT_EQ(report->workloads, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(report->policies.size(), 2U);
  const PolicyReport& x = report->policies[0];
  EXPECT_EQ(x.figures[IndexOf("completion_mean_seconds")], (15.0 + 60) / 2);
  EXPECT_EQ(x.figures[IndexOf("completion_p99_seconds")], (20.0 + 60) / 2);
  EXPECT_EQ(x.figures[IndexOf("jobs_completed")], 3);
  EXPECT_EQ(x.figures[IndexOf("rho_mean")], std::nullopt);
  EXPECT_EQ(x.pooled_completion_seconds,
            (Distribution{.count = 3, .mean = 30, .p50 = 20, .p90 = 60, .p99 = 60, .max = 60}));
  EXPECT_TRUE(x.against_first.empty());
  EXPECT_EQ(report->policies[1].runs[0].record.workload, "one");
}

TEST(CompareTest, DifferencesArePairedByWorkload) {
  const auto report = Compare("t", {Measured("x", "one", {10, 20}), Measured("x", "two", {60}),
                                    Measured("y", "two", {60}), Measured("y", "one", {20, 20})});
  ASSERT_TRUE(report) << report.error();
  const std::vector<PairedFigure>& all = report->policies[1].against_first;
  const auto at = [&](std::string_view key) {
    return *std::ranges::find(all, IndexOf(key), &PairedFigure::kind);
  };
  EXPECT_EQ(at("completion_mean_seconds"), (PairedFigure{.kind = IndexOf("completion_mean_seconds"),
                                                         .signs = {.worse = 1, .ties = 1, .p = 1},
                                                         .differences = {5, 0},
                                                         .mean = 2.5}));
  // A higher useful share is better: 40 of 80 GPU seconds against 30 of 80.
  EXPECT_EQ(at("useful_share").signs, (SignTest{.better = 1, .ties = 1, .p = 1}));
}

TEST(CompareTest, AFigureThatAWorkloadLacksHasNoMean) {
  RunRecord waits = CompletedAfter("x", "two", {10});
  waits.jobs[0].completed.reset();
  const auto report = Compare("t", {Measured("x", "one", {10}), Measure(waits, {})});
  ASSERT_TRUE(report) << report.error();
  EXPECT_EQ(report->policies[0].figures[IndexOf("completion_mean_seconds")], std::nullopt);
  EXPECT_EQ(report->policies[0].figures[IndexOf("jobs_completed")], 1);
}

TEST(CompareTest, PoliciesHaveTheSameWorkloads) {
  const auto error = [](std::vector<MeasuredRun> runs) {
    return Compare("t", std::move(runs)).error();
  };
  EXPECT_EQ(error({}).message, "there are no runs; name a policy and a workload");
  EXPECT_EQ(error({Measured("x", "one", {1}), Measured("x", "one", {1})}).message,
            "there are two runs of policy x on workload one; remove one");
  EXPECT_EQ(error({Measured("x", "one", {1}), Measured("x", "two", {1}), Measured("y", "two", {1})})
                .message,
            "policy y has no run on workload one; run all policies on it");
}

TEST(FigureKindsTest, ShowTheirUnit) {
  const FigureKind& share = FigureKinds()[IndexOf("useful_share")];
  EXPECT_EQ(Shown(share, 0.8767), "87.7");
  EXPECT_EQ(Shown(share, std::nullopt), "-");
  EXPECT_EQ(Shown(share, std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(ShownDifference(share, 0.0123), "+1.2");
  EXPECT_EQ(ShownDifference(share, -0.0123), "-1.2");
  EXPECT_EQ(ShownDifference(share, -0.00001), "0.0");
  EXPECT_EQ(ShownDifference(share, 0), "0.0");
}

}  // namespace
}  // namespace pliant::simulator
