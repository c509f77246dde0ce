// From a scenario to the record of a run: by the event engine, and by baselines.

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/baseline_run.h"
#include "simulator/isolated.h"
#include "simulator/model/job_model.h"
#include "simulator/scenario_input.h"
#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

using planner::QueuePolicy;
using testing::HasSubstr;

Scenario Parsed(const std::string& yaml, const Profiles& profiles) {
  auto scenario = ParseScenario(yaml, "a.yaml", profiles);
  EXPECT_TRUE(scenario) << scenario.error();
  return scenario ? *std::move(scenario) : Scenario{};
}

constexpr const char* kTwoNodes = "nodes: [{count: 2, gpus: 2}]\n";

TEST(ScenarioInputTest, AllThatAScenarioHas) {
  const Profiles profiles = SmallProfiles();
  const Scenario scenario = Parsed(std::string(kTwoNodes) + R"(
queues: {research: {weight: 300, policy: Throughput}}
jobs:
  - {name: a, profile: small, batch: 32, queue: research, priority: 7000, min: 2, max: 3, submit: 9s,
     deadline: 1h}
  - {name: b, profile: small, batch: 8}
events:
  - {at: 10s, cordon: n00}
  - {at: 20s, uncordon: n00}
  - {at: 30s, fail: n01, for: 5m}
  - {at: 40s, priority: {job: b, to: 10}}
  - {at: 50s, finish: b}
)",
                                   profiles);
  const auto input = InputOf(profiles, scenario, {});
  ASSERT_TRUE(input) << input.error();
  EXPECT_EQ(input->nodes, scenario.nodes);
  ASSERT_EQ(input->queues.size(), 2U) << "the one of b is built in";
  EXPECT_EQ(input->queues[0].weight, 300);
  EXPECT_EQ(input->queues[1].name, "default");
  ASSERT_EQ(input->jobs.size(), 2U);
  const SimulatedJob& b = input->jobs[0];
  EXPECT_EQ(b.view.max_learners, 2) << "8 samples are enough for 2 learners";
  EXPECT_EQ(b.view.cooldown, planner::Seconds(30));
  const SimulatedJob& a = input->jobs[1];
  EXPECT_EQ(a.view.key.name, "a");
  EXPECT_EQ(a.application, "small");
  EXPECT_EQ(a.submitted, 9000);
  EXPECT_EQ(a.deadline, 3'600'000);
  EXPECT_EQ(a.view.queue, "research");
  EXPECT_EQ(a.view.priority, 7000);
  EXPECT_EQ(a.view.min_learners, 2);
  EXPECT_EQ(a.view.max_learners, 3);
  EXPECT_EQ(a.view.cooldown, planner::Seconds(0)) << "its queue shares by speed";
  ASSERT_EQ(input->changes.size(), 5U);
  EXPECT_FALSE(std::get<NodeSchedulable>(input->changes[0].what).schedulable);
  EXPECT_TRUE(std::get<NodeSchedulable>(input->changes[1].what).schedulable);
  EXPECT_EQ(std::get<NodeLost>(input->changes[2].what).for_time, 300'000);
  EXPECT_EQ(std::get<JobPriority>(input->changes[3].what).priority, 10);
  EXPECT_EQ(std::get<JobEnds>(input->changes[4].what).job, "b");
  EXPECT_EQ(input->changes[4].at, 50'000);
}

TEST(ScenarioInputTest, OptionsReplaceRules) {
  const Profiles profiles = SmallProfiles();
  const Scenario scenario = Parsed(std::string(kTwoNodes) +
                                       "queues: {q: {policy: Throughput, bias: ShortJobs}}\n"
                                       "jobs: [{name: a, profile: small, batch: 8, queue: q}]\n",
                                   profiles);
  const auto as_written = InputOf(profiles, scenario, {}).value();
  EXPECT_EQ(as_written.queues[0].policy, QueuePolicy::kThroughput);
  EXPECT_TRUE(as_written.queues[0].favors_short_jobs);
  EXPECT_EQ(as_written.queues[1].policy, QueuePolicy::kFairShare);
  const auto other =
      InputOf(profiles, scenario, {.policy = QueuePolicy::kFifo, .favors_short_jobs = false})
          .value();
  for (const planner::QueueView& queue : other.queues) {
    EXPECT_EQ(queue.policy, QueuePolicy::kFifo);
    EXPECT_FALSE(queue.favors_short_jobs);
  }
  EXPECT_EQ(other.jobs[0].view.cooldown, planner::Seconds(30));
}

TEST(ScenarioInputTest, AnElasticBatchRaisesTheMaximumThatItLimits) {
  const Profiles profiles = SmallProfiles();
  const Scenario scenario = Parsed(
      "nodes: [{count: 2, gpus: 16}]\njobs:\n"
      "  - {name: by-batch, profile: small, batch: 16}\n"
      "  - {name: by-hand, profile: small, batch: 16, max: 3}\n",
      profiles);
  const auto fixed = InputOf(profiles, scenario, {}).value();
  EXPECT_EQ(fixed.jobs[0].view.max_learners, 4);
  EXPECT_EQ(fixed.jobs[1].view.max_learners, 3);
  const auto elastic = InputOf(profiles, scenario, {.batch = BatchRule::kRecorded}).value();
  EXPECT_EQ(elastic.jobs[0].view.max_learners, 8);
  EXPECT_EQ(elastic.jobs[1].view.max_learners, 3);
}

TEST(ScenarioInputTest, ReportsScenariosThatCannotBeSimulated) {
  ProfileTables tables = SmallTables();
  tables.validations.back().batch = 24;
  const Profiles uneven({Profile(tables)});
  const Scenario scenario =
      Parsed(std::string(kTwoNodes) + "jobs: [{name: a, profile: small}]\n", uneven);
  EXPECT_TRUE(InputOf(uneven, scenario, {}));
  EXPECT_EQ(InputOf(uneven, scenario, {.batch = BatchRule::kFromState}).error().message,
            "the batches of profile small go from 8 to 24, which is not 8 doubled several times; "
            "use --batch fixed, or give the profile a table for 32 as its largest batch");
  const Profiles profiles = SmallProfiles();
  const Scenario wide = Parsed(
      "nodes: [{gpus: 4}]\njobs: [{name: a, profile: small, batch: 32, "
      "gpusPerLearner: 4}]\n",
      profiles);
  EXPECT_TRUE(InputOf(profiles, wide, {}));
  EXPECT_EQ(InputOf(profiles, wide, {.batch = BatchRule::kRecorded}).error().message,
            "job a has 4 GPUs a learner, and begins with the smallest batch of profile small: 8 is "
            "enough for 2 GPUs; lower gpusPerLearner, or use --batch fixed");
  Scenario full = Parsed(std::string(kTwoNodes) + "jobs: [{name: a, profile: small}]\n", profiles);
  full.jobs[0].min_learners = 9;
  EXPECT_THAT(InputOf(profiles, full, {}).error().message, HasSubstr("nodes have room for 4"));
}

// A learner of two GPUs is as fast as two learners on one node.
TEST(ScenarioInputTest, LearnersOfSeveralGpus) {
  const Profiles profiles = SmallProfiles();
  const Scenario scenario =
      Parsed(std::string(kTwoNodes) +
                 "jobs:\n"
                 "  - {name: two, profile: small, batch: 32, gpusPerLearner: 2, max: 1}\n",
             profiles);
  const auto input = InputOf(profiles, scenario, {}).value();
  const Work& work = *input.jobs[0].work;
  const WorkState state{.batch = 32};
  EXPECT_DOUBLE_EQ(work.Rate(state, {1}), Goodput(profiles[0], 0, {2}, 32));
  EXPECT_DOUBLE_EQ(work.RateAlone(state), Goodput(profiles[0], 0, {2}, 32));
  EXPECT_EQ(work.Speeds(state, nullptr), planner::SpeedCurve{1000});
  const RunRecord run = RunEvents(input, {});
  ASSERT_TRUE(run.jobs[0].completed);
  EXPECT_EQ(run.jobs[0].sizes.front().gpus, 2);
  const double seconds = *IsolatedSecondsOf(profiles, scenario)(0, 2);
  EXPECT_NEAR(static_cast<double>(*run.jobs[0].completed - *run.jobs[0].started), seconds * 1000,
              2);
}

TEST(ScenarioInputTest, SeveralLearnersOfSeveralGpus) {
  const Profiles profiles = SmallProfiles();
  const Scenario scenario =
      Parsed(std::string(kTwoNodes) +
                 "jobs:\n"
                 "  - {name: two, profile: small, batch: 32, gpusPerLearner: 2, min: 2, max: 2}\n",
             profiles);
  const RunRecord run = RunEvents(InputOf(profiles, scenario, {}).value(), {});
  EXPECT_EQ(run.jobs[0].sizes.front().gpus, 4);
}

TEST(ScenarioInputTest, AJobThatIsNotDoneSaysWhy) {
  const Profiles profiles = SmallProfiles();
  const Scenario scenario = Parsed(std::string(kTwoNodes) +
                                       "queues: {closed: {limit: 0}}\n"
                                       "jobs: [{name: a, profile: small, queue: closed}]\n",
                                   profiles);
  const RunRecord run = RunEvents(InputOf(profiles, scenario, {}).value(), {});
  EXPECT_FALSE(run.jobs[0].completed);
  EXPECT_THAT(run.jobs[0].undone, HasSubstr("limit"));
}

TEST(IsolatedSecondsTest, OnAllGpusThatTheBatchAllows) {
  const Profiles profiles = SmallProfiles();
  const Scenario scenario = Parsed(std::string(kTwoNodes) +
                                       "jobs:\n"
                                       "  - {name: a, profile: small, batch: 8}\n"
                                       "  - {name: b, profile: small, batch: 32, min: 2}\n",
                                   profiles);
  const IsolatedSeconds isolated = IsolatedSecondsOf(profiles, scenario);
  EXPECT_DOUBLE_EQ(*isolated(0, 1), 200) << "steps of 1 s, progress 200";
  EXPECT_DOUBLE_EQ(*isolated(0, 2), 300) << "steps of 1.5 s";
  EXPECT_DOUBLE_EQ(*isolated(0, 64), 300) << "8 samples are enough for 2 learners";
  EXPECT_DOUBLE_EQ(*isolated(1, 1), *isolated(1, 2)) << "it needs 2";
}

Scenario OneJob(const Profiles& profiles) {
  return Parsed(std::string(kTwoNodes) + "jobs: [{name: a, profile: small, gpus: 1}]\n", profiles);
}

TEST(BaselineRunTest, ARecordLikeThatOfEvents) {
  const Profiles profiles = SmallProfiles();
  for (const Baseline baseline : {Baseline::kTiresias, Baseline::kOptimus, Baseline::kStrict}) {
    const auto run = RunBaseline(profiles, OneJob(profiles), baseline, {});
    ASSERT_TRUE(run) << run.error();
    EXPECT_EQ(run->gpus, 4);
    EXPECT_EQ(run->plans, 4);
    EXPECT_EQ(run->end, 290'000);
    const JobRecord& job = run->jobs.at(0);
    EXPECT_EQ(job.name, "a");
    EXPECT_EQ(job.application, "small");
    EXPECT_EQ(job.started, 90'000);
    EXPECT_EQ(job.completed, 290'000);
    EXPECT_EQ(job.sizes, (std::vector<SizeAt>{{60'000, 1, 8}, {290'000, 0, 8}}));
    EXPECT_DOUBLE_EQ(job.gpu_seconds, 230) << "30 s of them for its start";
    EXPECT_DOUBLE_EQ(job.useful_gpu_seconds, 200);
    EXPECT_EQ(job.resizes + job.moves, 0);
  }
}

TEST(BaselineRunTest, RoundsAndRestarts) {
  const Profiles profiles = SmallProfiles();
  const auto run = RunBaseline(profiles, OneJob(profiles), Baseline::kStrict,
                               {.round_seconds = 10, .restart_seconds = 0});
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->jobs[0].started, 10'000);
  EXPECT_EQ(run->jobs[0].completed, 210'000);
}

TEST(BaselineRunTest, ReportsFeaturesThatABaselineDoesNotHave) {
  const Profiles profiles = SmallProfiles();
  const std::string job = "jobs: [{name: a, profile: small, batch: 32, gpus: 5}]\n";
  const std::pair<std::string, std::string> kCases[] = {
      {kTwoNodes + job + "queues: {q: {}}\n", "there are queues"},
      {kTwoNodes + job + "events: [{at: 1s, finish: a}]\n", "there are events"},
      {"nodes: [{gpus: 4}, {gpus: 8}]\n" + job, "the nodes differ"},
      {kTwoNodes + job, "job a asks for 5 GPUs, and the nodes have 4; add nodes"},
  };
  for (const auto& [yaml, message] : kCases) {
    const Status checked = CheckForBaseline(Parsed(yaml, profiles));
    ASSERT_FALSE(checked) << yaml;
    EXPECT_THAT(checked.error().message, HasSubstr(message));
  }
  EXPECT_TRUE(CheckForBaseline(OneJob(profiles)));
}

}  // namespace
}  // namespace pliant::simulator
