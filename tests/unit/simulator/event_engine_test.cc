#include "simulator/events/event_engine.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "simulator/events/curve_work.h"

namespace pliant::simulator {
namespace {

constexpr std::int64_t kSecond = 1000;

std::vector<planner::NodeView> Nodes(int count, int gpus) {
  std::vector<planner::NodeView> nodes;
  for (int index = 0; index < count; ++index) {
    planner::NodeView node{.name = Format("n{:02}", index)};
    node.allocatable.gpus = gpus;
    nodes.push_back(node);
  }
  return nodes;
}

// A job of 1 to `max` learners, without a cooldown. `seconds`: of its work with one learner.
SimulatedJob JobOf(const std::string& name, std::int64_t submitted, int max,
                   std::optional<double> seconds, planner::SpeedCurve speeds = {}) {
  SimulatedJob job{.submitted = submitted,
                   .work = std::make_shared<CurveWork>(std::move(speeds), seconds, max)};
  job.view.key = {"team-a", name, name};
  job.view.max_learners = max;
  job.view.training.reproducibility = planner::Reproducibility::kStatistical;
  job.view.training.logical_shards = max;
  job.view.needs.resources.gpus = 1;
  job.view.cooldown = planner::Seconds(0);
  return job;
}

const JobRecord& Record(const RunRecord& run, const std::string& name) {
  return *std::ranges::find(run.jobs, name, &JobRecord::name);
}

// Two jobs on two GPUs: the second one takes a GPU from the first, and gives it back at its end.
const RunInput kTwoJobs{.nodes = Nodes(1, 2),
                        .queues = {},
                        .pools = {},
                        .jobs = {JobOf("a", 0, 2, 100), JobOf("b", 10 * kSecond, 2, 50)},
                        .changes = {}};

TEST(EventEngine, LearnersJoinAndLeaveWhileOthersTrain) {
  const RunRecord run = RunEvents(kTwoJobs, {});
  // b: planned at 10.5 s, its GPU is free at 12.5, it trains from 27.6 on.
  EXPECT_EQ(Record(run, "b").started, 27'600);
  EXPECT_EQ(Record(run, "b").completed, 77'600);
  // a: trains alone from 15.6 on with one learner. The GPU of b is free at 79.6 s, and its second
  // learner joins at 94.6, when 21 s of work are left.
  EXPECT_EQ(Record(run, "a").started, 15'600);
  EXPECT_EQ(Record(run, "a").completed, 105'200);
  EXPECT_EQ(Record(run, "a").resizes, 1);
  EXPECT_EQ(Record(run, "a").moves, 0);
  const std::vector<SizeAt> sizes = {{.at = 500, .gpus = 2},
                                     {.at = 12'500, .gpus = 1},
                                     {.at = 79'600, .gpus = 2},
                                     {.at = 105'200, .gpus = 0}};
  EXPECT_EQ(Record(run, "a").sizes, sizes);
  EXPECT_NEAR(Record(run, "a").gpu_seconds, 2 * 12 + 67.1 + 2 * 25.6, 1e-6);
  EXPECT_NEAR(Record(run, "a").useful_gpu_seconds, 100, 1e-6);
  EXPECT_EQ(run.gpus, 2);
  EXPECT_EQ(run.end, 105'200);
}

TEST(EventEngine, RestartsStopTheWholeJob) {
  const RunRecord run = RunEvents(kTwoJobs, {.resizing = Restarting{}});
  EXPECT_EQ(Record(run, "b").started, 40'500);
  EXPECT_EQ(Record(run, "b").completed, 90'500);
  // a has trained from 40.5 to 91.0 s, and restarts with two learners until 121.0.
  EXPECT_EQ(Record(run, "a").completed, 145'750);
}

TEST(EventEngine, PlansMayComeInRounds) {
  const RunRecord run = RunEvents(kTwoJobs, {.resizing = Restarting{}, .plan_every = 60 * kSecond});
  // a has both GPUs from the plan at 0 s, and trains from 30 to 60. Then both have one, and train
  // from 90 on.
  EXPECT_EQ(Record(run, "a").completed, 130'000);
  EXPECT_EQ(Record(run, "b").completed, 140'000);
}

TEST(EventEngine, ALostNodeUndoesTheTrainingSinceTheCheckpoint) {
  const RunInput input{.nodes = Nodes(1, 1),
                       .queues = {},
                       .pools = {},
                       .jobs = {JobOf("a", 0, 1, 1000)},
                       .changes = {{500 * kSecond, NodeLost{"n00", 100 * kSecond}}}};
  const RunRecord run = RunEvents(input, {});
  EXPECT_EQ(Record(run, "a").lost_seconds, 200);
  // 284.4 s of work are in the checkpoint at 300 s. Training continues at 615.6.
  EXPECT_EQ(Record(run, "a").completed, 1'331'200);
}

TEST(EventEngine, OtherLearnersContinueWithoutALostOne) {
  const RunInput input{.nodes = Nodes(2, 1),
                       .queues = {},
                       .pools = {},
                       .jobs = {JobOf("a", 0, 2, 1000)},
                       .changes = {{100 * kSecond, NodeLost{"n01", 10'000 * kSecond}}}};
  const RunRecord run = RunEvents(input, {});
  EXPECT_EQ(Record(run, "a").lost_seconds, 0);
  // Until 100 s two learners trained for 84.4 s; a pause of 1 s; then one trains the rest.
  EXPECT_EQ(Record(run, "a").completed, (100 + 1) * kSecond + (1000'000 - 168'800));
}

TEST(EventEngine, APriorityMovesGpus) {
  RunInput input{.nodes = Nodes(1, 4),
                 .queues = {},
                 .pools = {},
                 .jobs = {JobOf("a", 0, 4, std::nullopt), JobOf("b", 0, 4, std::nullopt)},
                 .changes = {{100 * kSecond, JobPriority{"a", 10'000}},
                             {200 * kSecond, JobEnds{"a"}},
                             {300 * kSecond, JobEnds{"b"}},
                             {400 * kSecond, JobEnds{"nobody"}}}};
  input.jobs[1].view.priority = 1000;
  input.jobs[0].view.priority = 1000;
  const RunRecord run = RunEvents(input, {});
  const std::vector<SizeAt> sizes = {{.at = 500, .gpus = 2},
                                     {.at = 102'500, .gpus = 1},
                                     {.at = 202'000, .gpus = 4},
                                     {.at = 302'000, .gpus = 0}};
  std::vector<SizeAt> of_b = Record(run, "b").sizes;
  EXPECT_EQ(of_b.front(), sizes.front());
  EXPECT_EQ(of_b[1], sizes[1]);
  EXPECT_EQ(of_b[2], sizes[2]);
  EXPECT_FALSE(Record(run, "b").completed.has_value()) << "it was ended, it has not completed";
}

TEST(EventEngine, GpusGoToTheJobThatTheySpeedUp) {
  const planner::SpeedCurve stalls = {1000, 1100, 1100, 1100};
  const RunInput input{.nodes = Nodes(1, 4),
                       .queues = {{.policy = planner::QueuePolicy::kThroughput}},
                       .pools = {},
                       .jobs = {JobOf("scales", 0, 4, 1000, {1000, 2000, 3000, 3900}),
                                JobOf("stalls", 0, 4, 1000, stalls)},
                       .changes = {}};
  const RunRecord by_speed = RunEvents(input, {});
  EXPECT_EQ(Record(by_speed, "scales").sizes.front(), (SizeAt{.at = 500, .gpus = 3}));
  EXPECT_EQ(Record(by_speed, "stalls").sizes.front(), (SizeAt{.at = 500, .gpus = 1}));
  // Without the curves, and in proportion to its learners as the planner then has to assume.
  const RunRecord unknown = RunEvents(input, {.speeds = KnownSpeeds::kNone});
  EXPECT_EQ(Record(unknown, "scales").sizes.front(), (SizeAt{.at = 500, .gpus = 2}));
}

TEST(EventEngine, AJobThatFitsNowhereWaitsToTheEnd) {
  RunInput input{.nodes = Nodes(1, 1),
                 .queues = {},
                 .pools = {},
                 .jobs = {JobOf("large", 0, 8, 10), JobOf("small", 0, 1, 10)},
                 .changes = {}};
  input.jobs[0].view.min_learners = 8;
  const RunRecord run = RunEvents(input, {.max_time = 1'000'000 * kSecond});
  EXPECT_FALSE(Record(run, "large").started.has_value());
  EXPECT_FALSE(Record(run, "large").completed.has_value());
  EXPECT_TRUE(Record(run, "small").completed.has_value());
}

TEST(EventEngine, NothingToDoIsARun) { EXPECT_EQ(RunEvents({}, {}), RunRecord{}); }

// A random run, the same for the same seed.
RunInput DrawInput(std::mt19937& random) {
  const auto draw = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
  };
  RunInput input{.nodes = Nodes(draw(1, 4), draw(1, 4)),
                 .queues = {{.policy = static_cast<planner::QueuePolicy>(draw(0, 3))}}};
  const int jobs = draw(1, 12);
  for (int index = 0; index < jobs; ++index) {
    const int max = draw(1, 8);
    planner::SpeedCurve speeds;
    for (int size = 1; size <= max; ++size) speeds.push_back(size == 1 ? 1000 : draw(500, 4000));
    if (draw(0, 2) == 0) speeds.clear();
    input.jobs.push_back(
        JobOf(Format("j{}", index), draw(0, 600) * kSecond, max, draw(10, 2000), speeds));
    input.jobs.back().view.priority = draw(1, 10'000);
    input.jobs.back().view.min_learners = draw(0, 3) == 0 ? std::min(2, max) : 1;
  }
  return input;
}

// The most GPUs that jobs hold together at any time.
int MostGpus(const RunRecord& run) {
  std::map<std::int64_t, int> changes;
  for (const JobRecord& job : run.jobs) {
    int before = 0;
    for (const SizeAt& size : job.sizes) {
      changes[size.at] += size.gpus - before;
      before = size.gpus;
    }
  }
  int most = 0;
  int now = 0;
  for (const auto& [at, change] : changes) most = std::max(most, now += change);
  return most;
}

TEST(EventEngine, ManyRunsHoldTheirInvariants) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(Format("seed {}", seed));
    std::mt19937 random(seed);
    const RunInput input = DrawInput(random);
    RunOptions options{.max_time = 10'000'000 * kSecond};
    if (seed % 3 == 0) options.resizing = Restarting{};
    if (seed % 2 == 0) options.failures = {.mean_between = 1000 * kSecond};
    options.seed = seed;
    const RunRecord run = RunEvents(input, options);
    EXPECT_EQ(RunEvents(input, options), run);
    EXPECT_LE(MostGpus(run), run.gpus);
    for (std::size_t index = 0; index < run.jobs.size(); ++index) {
      const JobRecord& job = run.jobs[index];
      SCOPED_TRACE(job.name);
      if (input.jobs[index].view.min_learners > run.gpus) continue;
      ASSERT_TRUE(job.completed.has_value());
      ASSERT_TRUE(job.started.has_value());
      EXPECT_GT(*job.started, job.submitted);
      EXPECT_GT(*job.completed, *job.started);
      // All of the work was done, and no more than once without failures.
      const double work = input.jobs[index].work->SecondsAlone({});
      EXPECT_GE(job.useful_gpu_seconds, work - 1e-3);
      if (!options.failures) {
        EXPECT_NEAR(job.useful_gpu_seconds, work, 0.01);
      }
      EXPECT_TRUE(std::ranges::is_sorted(job.sizes, {}, &SizeAt::at));
    }
  }
}

}  // namespace
}  // namespace pliant::simulator
