#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "base/format.h"
#include "tests/scenario/planner/codes.h"
#include "tests/scenario/planner/expectations.h"
#include "tests/scenario/planner/fields.h"
#include "tests/scenario/planner/happenings.h"
#include "tests/scenario/planner/timed_world.h"

// Runs the scenarios of the YAML files in this folder. README.md has their format.
namespace pliant::planner {
namespace {

constexpr const char* kFolder = PLIANT_SOURCE_DIR "/tests/scenario/planner";

struct Scenario {
  std::string file;
  std::string name;
  YAML::Node yaml;
};
// For GoogleTest.
void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.file << ", scenario '" << scenario.name << "'";
}

std::vector<Scenario> LoadFile(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  try {
    std::vector<Scenario> scenarios;
    for (const YAML::Node& document : YAML::LoadAllFromFile(path.string())) {
      if (document.IsNull()) continue;
      const bool has_name = document.IsMap() && document["scenario"];
      const std::string name = has_name
                                   ? document["scenario"].Scalar()
                                   : Format("without name in line {}", document.Mark().line + 1);
      scenarios.push_back({file, name, document});
    }
    return scenarios;
  } catch (const YAML::Exception& error) {
    return {{file, error.what(), YAML::Node()}};
  }
}

std::vector<Scenario> LoadAll() {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.insert(entry.path());
  }
  std::vector<Scenario> scenarios;
  for (const std::filesystem::path& file : files)
    std::ranges::move(LoadFile(file), std::back_inserter(scenarios));
  return scenarios;
}

std::vector<Mismatch> RunStep(const YAML::Node& yaml, TimedWorld& timed) {
  std::vector<Mismatch> mismatches;
  Fields step(yaml, "a step");
  const ClusterSnapshot& snapshot = timed.world.snapshot;
  LetHappen(step, timed);
  timed.Observe();
  if (const auto at_once = step.Take("at_once")) {
    CompareJobs(*at_once, snapshot, timed.world.MakePlan(), mismatches);
  }
  timed.Settle();
  const Plan plan = timed.world.MakePlan();
  if (const auto jobs = step.Take("plan")) CompareJobs(*jobs, snapshot, plan, mismatches);
  if (const auto queues = step.Take("queues")) CompareQueues(*queues, plan, mismatches);
  if (const auto idle = step.Read<std::int64_t>("idleGpus"); idle && *idle != IdleGpus(plan)) {
    mismatches.push_back(
        {yaml.Mark().line + 1, Format("{} GPUs are idle, expected {}", IdleGpus(plan), *idle)});
  }
  std::int64_t yielded = 0;
  for (const PoolShare& pool : plan.pools) yielded += pool.yielded;
  if (const auto wanted = step.Read<std::int64_t>("yielded"); wanted && *wanted != yielded) {
    mismatches.push_back(
        {yaml.Mark().line + 1, Format("{} GPUs are yielded, expected {}", yielded, *wanted)});
  }
  step.Done();
  return mismatches;
}

// Throws Mistake and others.
std::vector<Mismatch> Run(const YAML::Node& yaml) {
  std::vector<Mismatch> mismatches;
  Fields scenario(yaml, "the scenario");
  scenario.Take("scenario");
  const auto steps = scenario.Take("steps");
  TimedWorld timed;
  SetUp(scenario, timed);
  scenario.Done();
  timed.Settle();
  if (!steps || !steps->IsSequence()) throw Mistake(yaml, "steps must be a list");
  for (std::size_t index = 0; index < steps->size(); ++index) {
    for (Mismatch& mismatch : RunStep((*steps)[index], timed)) {
      const auto passed = std::chrono::floor<Seconds>(timed.world.snapshot.now - kStart);
      mismatch.message.insert(0, Format("step {}, at {} s: ", index + 1, passed.count()));
      mismatches.push_back(mismatch);
    }
  }
  return mismatches;
}

std::vector<Mismatch> MismatchesOf(const YAML::Node& yaml) {
  try {
    return Run(yaml);
  } catch (const Mistake& mistake) {
    return {{mistake.line, mistake.what()}};
  } catch (const std::exception& error) {
    return {{yaml.Mark().line + 1, error.what()}};
  }
}

class PlannerScenario : public testing::TestWithParam<Scenario> {};

TEST_P(PlannerScenario, Holds) {
  const Scenario& scenario = GetParam();
  const std::string path = Format("{}/{}", kFolder, scenario.file);
  for (const Mismatch& mismatch : MismatchesOf(scenario.yaml)) {
    ADD_FAILURE_AT(path.c_str(), mismatch.line)
        << scenario.file << ", scenario '" << scenario.name << "', " << mismatch.message;
  }
}

// "fair_share__Two_equal_jobs"
std::string TestName(const testing::TestParamInfo<Scenario>& info) {
  std::string name =
      std::filesystem::path(info.param.file).stem().string() + "__" + info.param.name;
  std::ranges::replace_if(
      name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PlannerScenario, testing::ValuesIn(LoadAll()), TestName);

// All values of a key, at any depth.
void Collect(const YAML::Node& node, const std::string& key, std::set<std::string>& values) {
  if (node.IsSequence()) {
    for (const YAML::Node& each : node) Collect(each, key, values);
  }
  if (!node.IsMap()) return;
  for (const auto& entry : node) {
    if (entry.first.Scalar() == key) values.insert(entry.second.Scalar());
    Collect(entry.second, key, values);
  }
}

std::vector<std::string_view> InNoScenario(std::vector<std::string_view> words,
                                           const std::string& key) {
  std::set<std::string> used;
  for (const Scenario& scenario : LoadAll()) Collect(scenario.yaml, key, used);
  std::erase_if(words, [&](std::string_view word) { return used.contains(std::string(word)); });
  return words;
}

TEST(PlannerScenarios, HaveEveryReason) {
  EXPECT_THAT(InNoScenario(AllReasons(), "reason"), testing::IsEmpty());
}

TEST(PlannerScenarios, HaveEveryStateOfAQueue) {
  EXPECT_THAT(InNoScenario(AllQueueStates(), "state"), testing::IsEmpty());
}

// A scenario that was misunderstood must not pass.
TEST(PlannerScenarios, RejectWhatTheyDoNotUnderstand) {
  const struct {
    const char* yaml;
    const char* message;
  } kCases[] = {
      {"{steps: [], node: {}}", "unknown key 'node' in the scenario"},
      {"{jobs: {a: {learnrs: 4}}, steps: []}", "unknown key 'learnrs' in job a"},
      {"{jobs: {a: {learners: 4-8}}, steps: []}", "'4-8' is no number of learners"},
      {"{jobs: {a: {learners: 4}, a: {}}, steps: []}", "'a' is twice in jobs"},
      {"{jobs: {a: {priority: high}}, steps: []}", "priority of job a cannot be 'high'"},
      {"{queues: {q: {stop: Halt}}, steps: []}", "stop of queue q cannot be 'Halt'"},
      {"{nodes: [{gpus: 4}], steps: []}", "a node has no name"},
      {"{steps: [{afer: 60}]}", "unknown key 'afer' in a step"},
      {"{steps: [{finish: [a]}]}", "there is no job a"},
      {"{steps: [{plan: {a: {}}}]}", "there is no job a"},
      {"{steps: [{queues: {q: {}}}]}", "there is no queue q"},
      {"{jobs: {a: {}}, steps: [{plan: {a: {reason: Queud}}}]}", "reason of job a cannot be"},
      {"{jobs: {a: {}}, steps: [{plan: {a: {learner: 1}}}]}", "unknown key 'learner' in job a"},
      {"{nodes: {}}", "steps must be a list"},
  };
  for (const auto& each : kCases) {
    const std::vector<Mismatch> mismatches = MismatchesOf(YAML::Load(each.yaml));
    ASSERT_EQ(mismatches.size(), 1u) << each.yaml;
    EXPECT_THAT(mismatches[0].message, testing::HasSubstr(each.message));
  }
}

TEST(PlannerScenarios, SayWhereAPlanDiffers) {
  const std::vector<Mismatch> mismatches = MismatchesOf(YAML::Load(R"(
nodes: {count: 1, gpus: 4}
jobs:
  a: {learners: 1..4}
steps:
  - plan:
      a: {learners: 3, reason: Maximum}
)"));
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].line, 7);
  EXPECT_THAT(mismatches[0].message,
              testing::StartsWith("step 1, at 0 s: job a: learners is 4, expected 3"));
}

}  // namespace
}  // namespace pliant::planner
