#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/nearest.h"
#include "simulator/option_values.h"
#include "simulator/options.h"

namespace pliant::simulator {
namespace {

using testing::HasSubstr;

struct Answer {
  std::expected<Options, int> options = std::unexpected(-1);
  std::string out;
  std::string errors;
};

Answer Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "pliant-simulate");
  std::ostringstream out;
  std::ostringstream errors;
  auto options = ParseOptions(static_cast<int>(words.size()), words.data(), out, errors);
  return {std::move(options), out.str(), errors.str()};
}

SimulateOptions ParseSimulation(std::vector<const char*> words) {
  words.insert(words.begin(), {"--workload", "a.csv", "--profiles", "p"});
  Answer answer = Parse(std::move(words));
  EXPECT_TRUE(answer.options) << answer.errors;
  return answer.options ? std::get<SimulateOptions>(*answer.options) : SimulateOptions{};
}

TEST(SimulateOptionsTest, Defaults) {
  const SimulateOptions options = ParseSimulation({});
  EXPECT_EQ(options.workloads, std::vector<std::string>{"a.csv"});
  EXPECT_EQ(options.nodes, "16x4");
  ASSERT_EQ(options.policies.size(), 2U);
  EXPECT_EQ(options.policies[0], (RunPolicy{"FairShare", planner::QueuePolicy::kFairShare}));
  EXPECT_EQ(options.policies[1], (RunPolicy{"Throughput", planner::QueuePolicy::kThroughput}));
  EXPECT_TRUE(std::holds_alternative<LiveResizing>(options.resizing));
  EXPECT_EQ(options.batch, BatchRule::kFixed);
  EXPECT_EQ(options.speeds, KnownSpeeds::kTrue);
  EXPECT_FALSE(options.favors_short_jobs || options.failures);
  EXPECT_EQ(options.summary, "16x4, resize live, every 0, batch fixed, speeds known, hold 25 %");
}

TEST(SimulateOptionsTest, AllOfASimulation) {
  const SimulateOptions options = ParseSimulation(
      {"--workload", "b.csv,c.csv", "--nodes", "2x8",     "--policy",   "Fifo,Priority", "--resize",
       "restart:5",  "--every",     "60",      "--batch", "recorded",   "--speeds",      "unknown",
       "--bias",     "ShortJobs",   "--hold",  "10",      "--failures", "mtbf=6h",       "--seed",
       "7",          "--out",       "o.html",  "--json",  "o.json"});
  EXPECT_EQ(options.workloads, (std::vector<std::string>{"a.csv", "b.csv", "c.csv"}));
  EXPECT_EQ(std::get<Restarting>(options.resizing).pause, 5000);
  EXPECT_EQ(options.plan_every, 60'000);
  EXPECT_EQ(options.batch, BatchRule::kRecorded);
  EXPECT_EQ(options.speeds, KnownSpeeds::kNone);
  EXPECT_EQ(options.favors_short_jobs, true);
  EXPECT_EQ(options.hold_percent, 10);
  ASSERT_TRUE(options.failures);
  EXPECT_EQ(options.failures->mean_between, 6 * 3'600'000);
  EXPECT_EQ(options.failures->repair, 600'000);
  EXPECT_EQ(options.seed, 7U);
  EXPECT_EQ(options.html_file, "o.html");
  EXPECT_EQ(options.summary,
            "2x8, resize restart:5, every 60, batch recorded, speeds unknown, hold 10 %, bias "
            "ShortJobs, mtbf=6h seed 7");
}

TEST(SimulateOptionsTest, AScenarioKeepsItsOwnPolicies) {
  const Answer answer = Parse({"--scenario", "a.yaml", "--profiles", "p"});
  ASSERT_TRUE(answer.options) << answer.errors;
  EXPECT_EQ(std::get<SimulateOptions>(*answer.options).policies,
            (std::vector<RunPolicy>{{"as-written", AsWritten{}}}));
}

TEST(SimulateOptionsTest, ASnapshotWithChanges) {
  const Answer answer =
      Parse({"--snapshot", "-", "--set", "nodes+=2x8", "--set", "queue.a.weight=3", "--forward"});
  ASSERT_TRUE(answer.options) << answer.errors;
  const auto& options = std::get<WhatIfOptions>(*answer.options);
  EXPECT_EQ(options.snapshot_file, "-");
  EXPECT_EQ(options.edits, (std::vector<std::string>{"nodes+=2x8", "queue.a.weight=3"}));
  EXPECT_TRUE(options.forward);
  EXPECT_FALSE(options.all_jobs);
}

TEST(SimulateOptionsTest, HelpHasExamples) {
  const Answer answer = Parse({"--help"});
  ASSERT_FALSE(answer.options);
  EXPECT_EQ(answer.options.error(), 0);
  EXPECT_THAT(answer.out, HasSubstr("--set queue.research.weight=300"));
  EXPECT_EQ(answer.errors, "");
}

TEST(SimulateOptionsTest, ReportsWrongOptions) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> kCases = {
      {{}, "--workload: is missing; name --workload FILE, --scenario FILE or --snapshot FILE"},
      {{"--workload", "a"}, "--profiles: is missing; name a folder"},
      {{"--workload", "a", "--scenario", "b"}, "does not go with --scenario"},
      {{"--scenario", "b", "--profiles", "p", "--nodes", "1x1"},
       "write the nodes into the scenario"},
      {{"--snapshot", "a", "--policy", "Fifo"}, "--snapshot: does not go with --policy"},
      {{"--set", "nodes+=1x1"}, "--set: needs a snapshot; name --snapshot FILE"},
      {{"--workload", "a", "--profiles", "p", "--policy", "throughputs"},
       "there is no policy throughputs; did you mean Throughput? The policies are FairShare, "
       "Throughput, Priority, Fifo, tiresias, optimus, strict, as-written"},
      {{"--workload", "a", "--profiles", "p", "--policy", "Fifo,Fifo"}, "names Fifo twice"},
      {{"--workload", "a", "--profiles", "p", "--policy", "as-written"},
       "a CSV workload has no queues; name a policy"},
      {{"--workload", "a", "--profiles", "p", "--policy", "strict", "--batch", "state"},
       "--batch: changes the batch of jobs, which the baseline strict does not know; remove one"},
      {{"--workload", "a", "--profiles", "p", "--policy", "optimus", "--failures", "mtbf=1h"},
       "--failures: makes nodes fail, which the baseline optimus does not know; remove one"},
      {{"--workload", "a", "--profiles", "p", "--out", "x", "--json", "x"},
       "--json: has the file of --out; name another one"},
      {{"--workload", "a", "--profiles", "p", "--hold", "-1"}, "--hold"},
      {{"--workload", "a", "--profiles", "p", "--batch", "large"}, "--batch"},
      {{"--unheard-of"}, "--unheard-of"},
  };
  for (const auto& [words, message] : kCases) {
    SCOPED_TRACE(message);
    const Answer answer = Parse(words);
    ASSERT_FALSE(answer.options);
    EXPECT_EQ(answer.options.error(), kBadInput);
    EXPECT_THAT(answer.errors, HasSubstr(message));
    EXPECT_EQ(answer.out, "");
  }
}

TEST(OptionValuesTest, ReportsWrongValues) {
  EXPECT_EQ(ParseResize("often").error().message,
            "is often; write live, or restart:30 for jobs that restart in 30 s");
  EXPECT_THAT(ParseResize("restart:").error().message, HasSubstr("write a duration"));
  EXPECT_EQ(ParseEvery("250ms").error().message, "is 250ms; write whole seconds, for example 30");
  for (const char* const text : {"", "6h", "mtbf", "mtbf=6h,mtbf=6h", "mtbf=6h,", "often=6h"}) {
    EXPECT_THAT(ParseFailures(text).error().message, HasSubstr("mtbf=6h,repair=10m"));
  }
  EXPECT_THAT(ParseFailures("repair=1m").error().message, HasSubstr("add the mean time"));
  EXPECT_THAT(ParseFailures("mtbf=1s").error().message, HasSubstr("has a mtbf that is 1s"));
}

TEST(NearestTest, FewestLetters) {
  constexpr std::string_view kNames[] = {"FairShare", "Fifo", "strict"};
  EXPECT_EQ(Nearest("fifo", kNames), "Fifo");
  EXPECT_EQ(Nearest("stric", kNames), "strict");
  EXPECT_EQ(Nearest("fairsher", kNames), "FairShare");
  EXPECT_EQ(Nearest("", kNames), "Fifo");
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), kNames), "FairShare");
}

}  // namespace
}  // namespace pliant::simulator
