#include "simulator/inputs/scenario.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/inputs/node_groups.h"
#include "simulator/inputs/values.h"
#include "tests/unit/simulator/data_folder.h"
#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

using planner::kHostnameLabel;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kHour = 3600 * kSecond;

constexpr std::string_view kStory = R"(
nodes:
  - {count: 2, gpus: 4, labels: {zone: a}}
  - {gpus: 8}
queues:
  research: {weight: 200, guaranteed: 8, limit: 12, lendingLimit: 4, policy: Throughput, bias: ShortJobs}
  batch: {queueing: Strict, reclaim: ShrinkOnly}
jobs:
  - {name: late, submit: 1m, profile: small}
  - name: a
    submit: 53
    profile: small
    batch: 32
    min: 2
    max: 3
    queue: research
    priority: 9000
    gpusPerLearner: 2
    gpus: 8
    reproducibility: Bitwise
    deadline: 2h
events:
  - {at: 3h, finish: a}
  - {at: 1h, cordon: n00}
  - {at: 2h, uncordon: n00}
  - {at: 1h, fail: n02, for: 250ms}
  - {at: 1d, priority: {job: late, to: 10000}}
)";

Result<Scenario> Parse(std::string_view text) {
  return ParseScenario(std::string(text), "s.yaml", SmallProfiles());
}

TEST(ScenarioTest, ReadsEveryField) {
  const auto scenario = Parse(kStory);
  ASSERT_TRUE(scenario) << scenario.error();

  ASSERT_EQ(scenario->nodes.size(), 3u);
  const planner::NodeView first{.name = "n00",
                                .allocatable = {.gpus = 4},
                                .labels = {{kHostnameLabel, "n00"}, {"zone", "a"}}};
  EXPECT_EQ(scenario->nodes[0], first);
  EXPECT_EQ(scenario->nodes[1].name, "n01");
  EXPECT_EQ(scenario->nodes[2].name, "n02");
  EXPECT_EQ(scenario->nodes[2].allocatable.gpus, 8);

  const planner::QueueView batch{.name = "batch", .strict = true, .evicts = false};
  const planner::QueueView research{.name = "research",
                                    .weight = 200,
                                    .guaranteed_gpus = 8,
                                    .limit_gpus = 12,
                                    .lending_limit_gpus = 4,
                                    .policy = planner::QueuePolicy::kThroughput,
                                    .favors_short_jobs = true};
  EXPECT_THAT(scenario->queues, ElementsAre(batch, research));

  const ScenarioJob a{
      .spec = {.name = "a", .submitted_seconds = 53, .application = 0, .gpus = 8, .batch = 32},
      .min_learners = 2,
      .max_learners = 3,
      .queue = "research",
      .priority = 9000,
      .gpus_per_learner = 2,
      .reproducibility = planner::Reproducibility::kBitwise,
      .deadline = 2 * kHour};
  // The smallest batch is 8, which is enough for two learners.
  const ScenarioJob late{
      .spec = {.name = "late", .submitted_seconds = 60, .application = 0, .gpus = 1, .batch = 8},
      .max_learners = 2};
  ASSERT_EQ(scenario->jobs.size(), 2u);
  EXPECT_TRUE(scenario->jobs[0] == a);
  EXPECT_TRUE(scenario->jobs[1] == late);

  const std::vector<ScenarioEvent> want = {
      CordonNode{.at = kHour, .node = "n00"},
      FailNode{.at = kHour, .node = "n02", .lasts = 250},
      UncordonNode{.at = 2 * kHour, .node = "n00"},
      FinishJob{.at = 3 * kHour, .job = "a"},
      SetPriority{.at = 24 * kHour, .job = "late", .priority = 10000},
  };
  EXPECT_TRUE(scenario->events == want);
}

TEST(ScenarioTest, MaxIsWhatTheBatchAllows) {
  const auto scenario = Parse(
      "nodes: [{count: 4, gpus: 8}]\n"
      "jobs: [{name: a, profile: small, batch: 32}, {name: b, profile: small, batch: 32, "
      "gpusPerLearner: 3}]\n");
  ASSERT_TRUE(scenario) << scenario.error();
  EXPECT_EQ(scenario->jobs[0].max_learners, 8);
  EXPECT_EQ(scenario->jobs[1].max_learners, 2);
  EXPECT_EQ(scenario->jobs[1].spec.gpus, 3);
}

TEST(ScenarioTest, FilesAreReadOrRefused) {
  const DataFolder folder;
  folder.Write("s.yaml", kStory);
  EXPECT_TRUE(ReadScenario(folder.path() / "s.yaml", SmallProfiles()));
  const auto missing = ReadScenario(folder.path() / "no.yaml", SmallProfiles());
  ASSERT_FALSE(missing);
  EXPECT_EQ(folder.WithoutFolder(missing.error().message),
            "no.yaml is missing; add it, or choose another path");
  const auto directory = ReadScenario(folder.path() / "toy", SmallProfiles());
  ASSERT_FALSE(directory);
  EXPECT_EQ(folder.WithoutFolder(directory.error().message),
            "toy is a directory; name a YAML file");
  folder.Write("large.yaml", "");
  std::filesystem::resize_file(folder.path() / "large.yaml", kMaxScenarioBytes + 1);
  const auto large = ReadScenario(folder.path() / "large.yaml", SmallProfiles());
  ASSERT_FALSE(large);
  EXPECT_EQ(folder.WithoutFolder(large.error().message),
            "large.yaml has 16777217 bytes; split it into files of at most 16777216 bytes");
}

TEST(ScenarioTest, ACsvWorkloadRunsOnNodesOfOneLine) {
  const DataFolder folder;
  folder.Write("w.csv",
               "name,time,application,num_replicas,batch_size\nb,7,small,4,16\na,5,small,2,32\n");
  const auto scenario = ReadWorkloadScenario(folder.path() / "w.csv", "2x4,1x8", SmallProfiles());
  ASSERT_TRUE(scenario) << scenario.error();
  ASSERT_EQ(scenario->nodes.size(), 3u);
  EXPECT_EQ(scenario->nodes[2].name, "n02");
  EXPECT_EQ(scenario->nodes[2].allocatable.gpus, 8);
  const ScenarioJob a{
      .spec = {.name = "a", .submitted_seconds = 5, .application = 0, .gpus = 2, .batch = 32},
      .max_learners = 8};
  const ScenarioJob b{
      .spec = {.name = "b", .submitted_seconds = 7, .application = 0, .gpus = 4, .batch = 16},
      .max_learners = 4};
  ASSERT_EQ(scenario->jobs.size(), 2u);
  EXPECT_TRUE(scenario->jobs[0] == a);
  EXPECT_TRUE(scenario->jobs[1] == b);
  EXPECT_TRUE(scenario->queues.empty());
  EXPECT_TRUE(scenario->events.empty());
}

TEST(ParseNodesTest, NamesHaveEqualLength) {
  const auto nodes = ParseNodes("101x1");
  ASSERT_TRUE(nodes) << nodes.error();
  EXPECT_EQ(nodes->front().name, "n000");
  EXPECT_EQ(nodes->back().name, "n100");
}

struct BadText {
  std::string text;
  std::string error;
};

TEST(ParseNodesTest, ErrorsSayWhatToWrite) {
  const std::string remedy =
      "; write 1 to 100000 nodes, x, and 1 to 1024 GPUs of each, for example 2x8";
  const BadText kCases[] = {
      {"", "a group of nodes is (empty)" + remedy},
      {"16", "a group of nodes is 16" + remedy},
      {"16x", "a group of nodes is 16x" + remedy},
      {"0x4", "a group of nodes is 0x4" + remedy},
      {"-1x4", "a group of nodes is -1x4" + remedy},
      {"2x8,", "a group of nodes is (empty)" + remedy},
      {"2x8, 2x4", "a group of nodes is  2x4" + remedy},
      {"1x1025", "a group of nodes is 1x1025" + remedy},
      {"99999999999999999999x1", "a group of nodes is 99999999999999999999x1" + remedy},
      {"100000x1,1x1", "nodes: 1x1 makes 100001 nodes; write at most 100000 in all"},
      {"1000x1000,1x1", "nodes: 1x1 makes 1000001 GPUs; write at most 1000000 in all"},
  };
  for (const BadText& each : kCases) {
    const auto nodes = ParseNodes(each.text);
    ASSERT_FALSE(nodes) << each.text;
    EXPECT_EQ(nodes.error().message, each.error);
  }
}

TEST(ParseMillisTest, UnitsAndRange) {
  const std::pair<std::string, std::int64_t> kGood[] = {
      {"0", 0},          {"7", 7000},        {"53s", 53'000}, {"10m", 600'000},
      {"2h", 7'200'000}, {"1d", 86'400'000}, {"250ms", 250},  {"1000000000s", kMaxMillis},
      {"-0s", 0},
  };
  for (const auto& [text, millis] : kGood) {
    const auto parsed = ParseMillis(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, millis) << text;
  }
  const std::string write = "; write a duration, for example 250ms, 53s, 10m, 2h or 1d";
  const BadText kBad[] = {
      {"", "is (empty)" + write},
      {"s", "is s" + write},
      {"1.5h", "is 1.5h" + write},
      {"1 h", "is 1 h" + write},
      {"+1s", "is +1s" + write},
      {"-5s", "is -5s; write a duration of at least 0ms"},
      {"-9223372036854775808d", "is -9223372036854775808d; write a duration of at least 0ms"},
      {"1000000001", "is 1000000001; write a duration of at most 1000000000s"},
      {"11575d", "is 11575d; write a duration of at most 1000000000s"},
      {"99999999999999999999s",
       "is 99999999999999999999s; write a duration of at most 1000000000s"},
  };
  for (const BadText& each : kBad) {
    const auto parsed = ParseMillis(each.text);
    ASSERT_FALSE(parsed) << each.text;
    EXPECT_EQ(parsed.error().message, each.error);
  }
}

// A small generator, the same on every machine.
class Dice {
 public:
  std::size_t Below(std::size_t bound) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::size_t>(state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_ = 81723;
};

TEST(ScenarioTest, NoSpoilingOfAFileEndsTheProgram) {
  Dice dice;
  const Profiles profiles = SmallProfiles();
  const std::string_view kLetters = "{}[]:,-?&*!|>%@`\"'#\n\t 0az~\\\0\x80\xff";
  int refused = 0;
  for (std::size_t size = 0; size < kStory.size(); ++size) {
    const auto cut = ParseScenario(std::string(kStory.substr(0, size)), "s.yaml", profiles);
    if (cut) continue;
    ++refused;
    EXPECT_THAT(cut.error().message, HasSubstr("s.yaml:"));
  }
  for (int round = 0; round < 20'000; ++round) {
    std::string text(kStory);
    for (std::size_t change = dice.Below(3) + 1; change > 0; --change) {
      const std::size_t at = dice.Below(text.size());
      const std::size_t way = dice.Below(3);
      if (way == 0) text[at] = static_cast<char>(dice.Below(256));
      if (way == 1) text[at] = kLetters[dice.Below(kLetters.size())];
      if (way == 2) text.erase(at, 1);
    }
    const auto scenario = ParseScenario(text, "s.yaml", profiles);
    if (scenario) continue;
    ++refused;
    ASSERT_TRUE(scenario.error().message.starts_with("s.yaml:")) << scenario.error();
    ASSERT_FALSE(scenario.error().message.starts_with("s.yaml:0:")) << scenario.error();
  }
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace pliant::simulator
