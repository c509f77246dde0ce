#include "simulator/jsa/jsa_run.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/events/event_engine.h"
#include "simulator/events/run_options.h"
#include "simulator/jsa/live_input.h"
#include "simulator/jsa/node_gpus.h"
#include "simulator/jsa/poisson_jobs.h"
#include "simulator/jsa/sample_rates.h"
#include "simulator/jsa/samples_work.h"
#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

constexpr std::int64_t kSecond = 1000;

// One learner trains 8 samples a second with any batch. Two train 32 in 3 s, and fewer more slowly.
const SampleRules kRules = {.gpus_per_node = 2, .max_gpus = 2};

TEST(SampleRates, AreThoseOfTheFastestBatchThatFits) {
  const Profiles profiles = SmallProfiles();
  EXPECT_EQ(BatchesOf(profiles[0], kRules), std::vector<int>({8, 16, 32}));
  EXPECT_EQ(RateAlone(profiles[0]), 8);
  // Two learners of 16 samples: 2 s, and 1 s of synchronisation.
  const std::vector<double> rates = FastestRates(profiles[0], {8, 16, 32}, kRules);
  EXPECT_EQ(rates, std::vector<double>({8, 32 / 3.0}));
}

TEST(SampleRates, AShareMustFitTheMemoryOrAccumulate) {
  const Profiles profiles = SmallProfiles();
  EXPECT_FALSE(CanDivide(profiles[0], 1, 32, kRules));
  EXPECT_TRUE(CanDivide(profiles[0], 2, 32, kRules));
  EXPECT_FALSE(CanDivide(profiles[0], 3, 8, kRules)) << "3 samples are fewer than were measured";
  EXPECT_EQ(FastestRates(profiles[0], {32}, kRules), std::vector<double>({0, 32 / 3.0}));
  SampleRules accumulates = kRules;
  accumulates.accumulates = true;
  EXPECT_EQ(FastestRates(profiles[0], {32}, accumulates), std::vector<double>({8, 32 / 3.0}));
}

TEST(SampleRates, BatchesThatNoSizeCanTrainAreLeftOut) {
  const Profiles profiles = SmallProfiles();
  EXPECT_EQ(BatchesOf(profiles[0], {.max_gpus = 1}), std::vector<int>({8, 16}));
}

TEST(NodeGpus, TakesTheFewestFreeOnesThatAreEnough) {
  NodeGpus nodes(3, 4);
  const NodeGpus::Shares first = nodes.Take(3);
  EXPECT_EQ(first.front().node, 0U);
  const NodeGpus::Shares second = nodes.Take(2);
  EXPECT_EQ(second.front().node, 1U);
  const NodeGpus::Shares third = nodes.Take(1);
  EXPECT_EQ(third.front().node, 0U) << "of 1, 2 and 4 free GPUs";
  const NodeGpus::Shares fourth = nodes.Take(6);
  EXPECT_EQ(PlacementOf(fourth), Placement({4, 2}));
  nodes.GiveBack(second);
  EXPECT_EQ(PlacementOf(nodes.Take(2)), Placement({2}));
}

TEST(DrawJobs, EqualSeedsGiveEqualJobs) {
  const Profiles profiles = SmallProfiles();
  const Arrivals arrivals = {.applications = {0}, .jobs_per_hour = 60};
  EXPECT_EQ(DrawJobs(profiles, arrivals, 7), DrawJobs(profiles, arrivals, 7));
  EXPECT_NE(DrawJobs(profiles, arrivals, 7), DrawJobs(profiles, arrivals, 8));
}

TEST(DrawJobs, JobsHaveTheMeansThatWereGiven) {
  const Profiles profiles = SmallProfiles();
  const Arrivals arrivals = {.applications = {0}, .jobs_per_hour = 6'000};
  const std::vector<SamplesJob> jobs = DrawJobs(profiles, arrivals, 1);
  EXPECT_NEAR(static_cast<double>(jobs.size()), 48'000, 1'000);
  EXPECT_TRUE(std::ranges::is_sorted(jobs, {}, &SamplesJob::submitted));
  EXPECT_LT(jobs.back().submitted, arrivals.until);
  double samples = 0;
  for (const SamplesJob& job : jobs) {
    EXPECT_GE(job.samples, 0.5 * 2'400 * 8);
    EXPECT_LT(job.samples, 1.5 * 2'400 * 8);
    samples += job.samples;
  }
  EXPECT_NEAR(samples / static_cast<double>(jobs.size()), 2'400 * 8, 200);
}

// Two GPUs. At 0 s the first job gets both, starts at 10 s, and trains 32/3 samples a second. At
// 40 s the second arrives, so both jobs get one GPU: a speedup of 2 and not of 4/3. The first then
// has 800 - 320 = 480 samples left, starts again at 50 s, and ends at 50 + 480 / 8 = 110 s. The
// second has done (110 - 50) · 8 = 480 of 1120 samples; its other 640 take 60 s from 120 s on.
TEST(RunJsa, TwoJobsShareTwoGpus) {
  const Profiles profiles = SmallProfiles();
  const std::vector<SamplesJob> jobs = {{.submitted = 0, .samples = 800},
                                        {.submitted = 40 * kSecond, .samples = 1120}};
  const RunRecord run = RunJsa(
      profiles, jobs, {.nodes = 1, .rules = kRules, .decide_every = 0, .restart = 10 * kSecond});
  ASSERT_EQ(run.jobs.size(), 2U);
  const JobRecord& first = run.jobs[0];
  EXPECT_EQ(first.started, 10 * kSecond);
  EXPECT_EQ(first.completed, 110 * kSecond);
  EXPECT_EQ(first.resizes, 1);
  EXPECT_EQ(first.sizes,
            std::vector<SizeAt>(
                {{.at = 0, .gpus = 2}, {.at = 40 * kSecond, .gpus = 1}, {.at = 110 * kSecond}}));
  EXPECT_EQ(first.gpu_seconds, 2 * 40 + 70);
  EXPECT_NEAR(first.useful_gpu_seconds, 800 / 8.0, 1e-9);
  const JobRecord& second = run.jobs[1];
  EXPECT_EQ(second.started, 50 * kSecond);
  EXPECT_EQ(second.completed, 180 * kSecond);
  EXPECT_EQ(run.plans, 4);  // two arrivals, two ends
  EXPECT_EQ(run.end, 180 * kSecond);
}

// The largest batch needs both GPUs: the second job waits until the first has ended. The story is
// that of one job after the other.
TEST(RunJsa, AFixedBatchThatNeedsAllGpusMakesOthersWait) {
  const Profiles profiles = SmallProfiles();
  const std::vector<SamplesJob> jobs = {{.submitted = 0, .samples = 320},
                                        {.submitted = 5 * kSecond, .samples = 320}};
  const RunRecord run = RunJsa(profiles, jobs,
                               {.nodes = 1,
                                .rules = kRules,
                                .batch = BatchChoice::kMax,
                                .decide_every = 0,
                                .restart = 10 * kSecond});
  EXPECT_EQ(run.jobs[0].completed, 40 * kSecond);
  EXPECT_EQ(run.jobs[1].started, 50 * kSecond);
  EXPECT_EQ(run.jobs[1].completed, 80 * kSecond);
  EXPECT_EQ(run.jobs[0].resizes, 0);
}

TEST(RunJsa, DecidesAtMultiplesOfItsInterval) {
  const Profiles profiles = SmallProfiles();
  const std::vector<SamplesJob> jobs = {{.submitted = 1, .samples = 32}};
  const RunRecord run =
      RunJsa(profiles, jobs, {.nodes = 1, .rules = kRules, .decide_every = 60 * kSecond});
  EXPECT_EQ(run.jobs[0].started, 90 * kSecond);
  EXPECT_EQ(run.jobs[0].completed, 93 * kSecond);
}

// Nodes of one GPU: two learners of the small profile are as fast on two nodes as on one.
TEST(RunJsa, SpeedsMayDependOnNodes) {
  const Profiles profiles = SmallProfiles();
  const std::vector<SamplesJob> jobs = {{.submitted = 0, .samples = 320}};
  SampleRules rules = kRules;
  rules.gpus_per_node = 1;
  rules.depends_on_nodes = true;
  const RunRecord run = RunJsa(
      profiles, jobs, {.nodes = 2, .rules = rules, .decide_every = 0, .restart = 10 * kSecond});
  EXPECT_EQ(run.jobs[0].completed, 40 * kSecond);
}

std::vector<SamplesJob> ManyJobs(const Profiles& profiles, std::uint64_t seed) {
  const Arrivals arrivals = {.applications = {0},
                             .jobs_per_hour = 30,
                             .until = 3'600 * kSecond,
                             .mean_seconds_alone = 300};
  return DrawJobs(profiles, arrivals, seed);
}

TEST(RunJsa, HoldsNoMoreGpusThanThereAreAndTrainsAllSamples) {
  const Profiles profiles = SmallProfiles();
  for (const BatchChoice batch :
       {BatchChoice::kElastic, BatchChoice::kMax, BatchChoice::kRandom, BatchChoice::kMin}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(seed);
      const std::vector<SamplesJob> jobs = ManyJobs(profiles, seed);
      const JsaOptions options = {.nodes = 2, .rules = kRules, .batch = batch};
      const RunRecord run = RunJsa(profiles, jobs, options);
      EXPECT_EQ(run, RunJsa(profiles, jobs, options));
      std::map<std::int64_t, int> changes;  // of GPUs held, by time
      for (std::size_t index = 0; index < jobs.size(); ++index) {
        const JobRecord& job = run.jobs[index];
        ASSERT_TRUE(job.completed.has_value());
        // Times are whole milliseconds, rounded up.
        EXPECT_NEAR(job.useful_gpu_seconds, jobs[index].samples / 8, 0.01);
        int held = 0;
        for (const SizeAt& size : job.sizes) {
          changes[size.at] += size.gpus - held;
          held = size.gpus;
        }
      }
      int held = 0;
      for (const auto& [time, change] : changes) {
        held += change;
        EXPECT_LE(held, run.gpus) << time;
      }
      EXPECT_EQ(held, 0);
    }
  }
}

TEST(SamplesWork, KeepsItsBatchForAPhase) {
  const Profiles profiles = SmallProfiles();
  const SamplesWork work(profiles[0], 640, kRules, 2);
  WorkState state = work.Begin({}, {2}, nullptr);
  EXPECT_EQ(state.batch, 32);
  EXPECT_EQ(work.Rate(state, {2}), 32 / 3.0);
  EXPECT_EQ(work.Rate(state, {1}), 8) << "one learner accumulates two parts of 16 samples";
  EXPECT_EQ(work.PhaseEnd(state), 320);
  state = work.Begin({.phase = 1, .progress = 320, .batch = 32}, {1}, nullptr);
  EXPECT_EQ(state.batch, 8) << "of equally fast batches the smallest";
  EXPECT_EQ(work.PhaseEnd(state), 640);
  EXPECT_EQ(work.SecondsAlone(state), 40);
  EXPECT_EQ(work.Speeds(state, nullptr), planner::SpeedCurve({1000, 1333}));
  EXPECT_FALSE(work.IsDone(state));
  EXPECT_TRUE(work.IsDone({.phase = 2}));
}

TEST(LiveInput, PliantCompletesTheSameJobs) {
  const Profiles profiles = SmallProfiles();
  const std::vector<SamplesJob> jobs = ManyJobs(profiles, 1);
  const RunInput input = LiveInput(profiles, jobs, 2, kRules);
  const RunRecord run = RunEvents(input, RunOptions{});
  EXPECT_EQ(run, RunEvents(input, RunOptions{}));
  ASSERT_EQ(run.jobs.size(), jobs.size());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    EXPECT_EQ(run.jobs[index].submitted, jobs[index].submitted);
    EXPECT_TRUE(run.jobs[index].completed.has_value());
    // Each phase ends at a whole millisecond, rounded up.
    EXPECT_NEAR(run.jobs[index].useful_gpu_seconds, jobs[index].samples / 8, 0.1);
  }
}

}  // namespace
}  // namespace pliant::simulator
