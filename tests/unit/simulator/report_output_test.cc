#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "simulator/report/cdf_plot.h"
#include "simulator/report/html.h"
#include "simulator/report/json.h"
#include "simulator/report/report.h"
#include "simulator/report/text.h"
#include "tests/unit/simulator/report_records.h"

namespace pliant::simulator {
namespace {

using testing::HasSubstr;
using testing::Not;

std::optional<double> HundredSeconds(std::size_t, int gpus) { return 100.0 / gpus; }

Report ReportOf(std::vector<RunRecord> records, std::string title = "A test") {
  std::vector<MeasuredRun> runs;
  for (RunRecord& record : records) runs.push_back(Measure(std::move(record), HundredSeconds));
  auto report = Compare(std::move(title), std::move(runs));
  EXPECT_TRUE(report) << report.error();
  return *std::move(report);
}

Report TwoByTwo() {
  return ReportOf(
      {CompletedAfter("FairShare", "one", {100, 200}), CompletedAfter("FairShare", "two", {300}),
       CompletedAfter("tiresias", "one", {150, 250}), CompletedAfter("tiresias", "two", {400})});
}

// Names of a file with everything that may harm.
Report Hostile() {
  constexpr std::string_view kName = "<script>&\"'\xff\n]]>";
  RunRecord run = ThreeJobs();
  run.policy = kName;
  run.workload = kName;
  for (JobRecord& job : run.jobs) job.name = job.application = job.queue = kName;
  RunRecord huge = ThreeJobs();
  huge.policy = huge.jobs[0].name = huge.jobs[1].application = std::string(1'000'000, '&');
  huge.workload = kName;
  return ReportOf({run, huge}, std::string(kName));
}

std::size_t LongestLine(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(WriteTextTest, Tables) {
  const std::string text = WriteText(TwoByTwo());
  EXPECT_THAT(text, testing::StartsWith(R"(A test

2 workloads: completion times, makespan and queueing time in seconds
POLICY     JOBS  DONE   MEAN    P50    P90    P99  MAKESPAN  QUEUED
FairShare     3     3  225.0  200.0  250.0  250.0     250.0     0.0
tiresias      3     3  300.0  275.0  325.0  325.0     325.0     0.0
)"));
  EXPECT_THAT(text, HasSubstr(R"(
tiresias minus FairShare, mean of the differences
FIGURE                 DIFFERENCE  UNIT
completion time, mean       +75.0  s     worse in 2 of 2 workloads, p = 0.500
)"));
  EXPECT_THAT(text, HasSubstr("\nworkload two\nPOLICY"));
  EXPECT_THAT(text, HasSubstr("finish-time fairness: the completion time"));
}

TEST(WriteTextTest, FitsIntoATerminal) {
  EXPECT_LE(LongestLine(WriteText(TwoByTwo())), 100U);
  EXPECT_LE(LongestLine(WriteText(Hostile())), 100U);
  EXPECT_LE(LongestLine(WriteText(ReportOf({BusyRun("a", 160, 90)}))), 100U);
}

TEST(WriteTextTest, OneRunHasNoComparison) {
  const std::string text = WriteText(ReportOf({ThreeJobs()}));
  EXPECT_THAT(text, HasSubstr("FairShare     3     2  65.0  50.0  80.0  80.0         -    15.0"));
  EXPECT_THAT(text, Not(HasSubstr("minus")));
  EXPECT_THAT(text, Not(HasSubstr("workload three")));
}

TEST(WriteJsonTest, ReadsBack) {
  const nlohmann::json all = nlohmann::json::parse(WriteJson(ReportOf({ThreeJobs()})));
  EXPECT_EQ(all.at("version"), 1);
  EXPECT_EQ(all.at("workloads"), nlohmann::json({"three"}));
  const nlohmann::json& policy = all.at("policies").at(0);
  EXPECT_EQ(policy.at("policy"), "FairShare");
  EXPECT_EQ(policy.at("figures").at("completion_mean_seconds"), 65);
  EXPECT_TRUE(policy.at("figures").at("makespan_seconds").is_null());
  const nlohmann::json& run = policy.at("runs").at(0);
  EXPECT_EQ(run.at("gpu_seconds_by_size"),
            nlohmann::json::parse(
                R"([{"gpus": 2, "gpu_seconds": 80.0}, {"gpus": 4, "gpu_seconds": 320.0}])"));
  ASSERT_EQ(run.at("jobs").size(), 3U);
  const nlohmann::json& job = run.at("jobs").at(0);
  EXPECT_EQ(job.at("name"), "a");
  EXPECT_EQ(job.at("share_gpus"), 3);
  EXPECT_EQ(job.at("at_ms_gpus_batch"),
            nlohmann::json::parse("[[0, 4, 64], [30000, 2, 64], [50000, 0, 0]]"));
  EXPECT_TRUE(run.at("jobs").at(2).at("started_ms").is_null());
}

TEST(WriteJsonTest, HasTheComparison) {
  const nlohmann::json all = nlohmann::json::parse(WriteJson(TwoByTwo()));
  const nlohmann::json& paired = all.at("policies").at(1).at("against_first");
  const auto mean = std::ranges::find_if(
      paired, [](const auto& each) { return each.at("figure") == "completion_mean_seconds"; });
  ASSERT_NE(mean, paired.end());
  EXPECT_EQ(mean->at("differences"), nlohmann::json({50.0, 100.0}));
  EXPECT_EQ(mean->at("sentence"), "worse in 2 of 2 workloads, p = 0.500");
  EXPECT_TRUE(all.at("policies").at(0).at("against_first").empty());
}

// The markup in front of the charts.
std::string FrontOf(const std::string& page) {
  constexpr std::string_view kBegin = "<body>\n";
  const std::size_t begin = page.find(kBegin) + kBegin.size();
  return page.substr(begin, std::min(page.find("<a class=\"skip\""), page.find("</body>")) - begin);
}

// The runs whose charts the page has.
nlohmann::json RunsOf(const std::string& page) {
  constexpr std::string_view kBegin = "id=\"saved\">";
  const std::size_t at = page.find(kBegin);
  if (at == std::string::npos) return nlohmann::json::array();
  const std::size_t begin = at + kBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(WriteHtmlTest, IsWellFormedAndOnItsOwn) {
  for (const Report& report : {TwoByTwo(), ReportOf({ThreeJobs()})}) {
    const std::string page = WriteHtml(report);
    EXPECT_EQ(WrongInXml(FrontOf(page)), "");
    for (const std::string_view foreign :
         {"https:", "<img", " src=", "@import", "rel=\"stylesheet"}) {
      EXPECT_THAT(page, Not(HasSubstr(foreign)));
    }
    EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
    EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
    for (const std::string_view heading :
         {"Figures", "Completion times", "GPUs over time", "Sizes of jobs", "Definitions"}) {
      EXPECT_THAT(page, HasSubstr("<h2>" + std::string(heading) + "</h2>"));
    }
  }
}

TEST(CdfPictureTest, IsWellFormedAndOnItsOwn) {
  for (const Report& report : {TwoByTwo(), Hostile()}) {
    const std::string picture = CdfPicture(report);
    EXPECT_EQ(WrongInXml(picture), "");
    EXPECT_THAT(picture, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_THAT(picture, Not(HasSubstr("<script")));
  }
  EXPECT_THAT(CdfPicture(TwoByTwo()),
              HasSubstr(">" + TwoByTwo().policies.front().policy + "</text>"));
  EXPECT_EQ(WrongInXml(CdfPicture(ReportOf({{.policy = "p", .workload = "w"}}))), "");
}

TEST(WriteHtmlTest, NamesAreEscaped) {
  const Report report = Hostile();
  const std::string page = WriteHtml(report);
  EXPECT_EQ(WrongInXml(FrontOf(page)), "");
  EXPECT_THAT(FrontOf(page), Not(HasSubstr("<script")));
  EXPECT_EQ(RunsOf(page).size(), 2U);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;&amp;&quot;&#39;\xef\xbf\xbd\xef\xbf\xbd]]&gt;"));
  EXPECT_LT(page.size(), WriteHtml(TwoByTwo()).size() + 50'000);
  EXPECT_TRUE(nlohmann::json::accept(WriteJson(report)));
  EXPECT_THAT(WriteText(report), Not(HasSubstr("\xff")));
}

TEST(WriteHtmlTest, RunsWithoutJobsAndWithoutCompletions) {
  RunRecord none_ended = ThreeJobs();
  for (JobRecord& job : none_ended.jobs) job.completed.reset();
  const RunRecord empty{.policy = "p", .workload = "w"};
  for (const RunRecord& run : {none_ended, empty}) {
    const Report report = ReportOf({run});
    const std::string page = WriteHtml(report);
    EXPECT_EQ(WrongInXml(FrontOf(page)), "");
    EXPECT_EQ(RunsOf(page).size(), run.jobs.empty() ? 0U : 1U);
    EXPECT_THAT(page, HasSubstr("No job completed."));
    EXPECT_THAT(WriteText(report), HasSubstr(run.policy));
    EXPECT_FALSE(nlohmann::json::parse(WriteJson(report)).empty());
  }
  EXPECT_THAT(WriteHtml(ReportOf({empty})), HasSubstr("w, p: The run is empty."));
}

TEST(WriteHtmlTest, EachRunHasItsChart) {
  const nlohmann::json runs = RunsOf(WriteHtml(TwoByTwo()));
  ASSERT_EQ(runs.size(), 4U);
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(run.at("name"));
  EXPECT_THAT(names, testing::ElementsAre("one, FairShare", "one, tiresias", "two, FairShare",
                                          "two, tiresias"));
  EXPECT_EQ(runs[3].at("document").at("now"), 400'000);
}

TEST(WriteHtmlTest, RunsForWhichThePageIsTooSmallAreNamed) {
  std::vector<RunRecord> records(12, BusyRun("p", 160, 8));
  for (std::size_t at = 0; at < records.size(); ++at) records[at].workload = Format("w{}", at);
  const std::string page = WriteHtml(ReportOf(records));
  EXPECT_LT(page.size(), 9'000'000U);
  const std::size_t charts = RunsOf(page).size();
  EXPECT_GT(charts, 0U);
  EXPECT_LT(charts, records.size());
  EXPECT_FALSE(page.contains("w0, p: GPUs over time are left out"));
  EXPECT_TRUE(
      page.contains("w11, p: GPUs over time are left out, because the page would be too large."));
}

TEST(WritersTest, TheSameRecordsGiveTheSameBytesAndALimitedPage) {
  const auto make = [] {
    return ReportOf({BusyRun("FairShare", 160, 2), BusyRun("Throughput", 160, 1.5),
                     BusyRun("tiresias", 160, 3)});
  };
  const std::string page = WriteHtml(make());
  EXPECT_TRUE(page == WriteHtml(make()));  // not printed: it has megabytes
  EXPECT_EQ(WriteJson(make()), WriteJson(make()));
  EXPECT_EQ(WriteText(make()), WriteText(make()));
  EXPECT_LT(page.size(), 3'000'000U);
  EXPECT_EQ(WrongInXml(FrontOf(page)), "");
}

}  // namespace
}  // namespace pliant::simulator
