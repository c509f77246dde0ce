#include "trainer/process/training_setup.h"

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace pliant {
namespace {

// Batch, logical shards and seed, as set by a job or a program.
struct Said {
  std::optional<std::uint64_t> batch = std::nullopt;
  std::optional<int> shards = std::nullopt;
  std::optional<std::uint64_t> seed = std::nullopt;
};
struct ResolveCase {
  std::string name;
  bool alone = false;
  std::optional<int> max_learners = std::nullopt;
  Said job = {};
  Said program = {};
  TrainingSetup want = {};
  std::string error = "";  // expected instead of `want` if not empty
};

const ResolveCase kResolveCases[] = {
    {.name = "alone, nothing is set",
     .alone = true,
     .want = {.global_batch_size = 256, .logical_shards = 1, .max_shards_of_learner = 1}},
    {.name = "alone, the program sets everything",
     .alone = true,
     .program = {64, 4, 3},
     .want = {.global_batch_size = 64, .logical_shards = 4, .max_shards_of_learner = 4, .seed = 3}},
    {.name = "alone, the environment sets everything",
     .alone = true,
     .job = {64, 4, 3},
     .want = {.global_batch_size = 64, .logical_shards = 4, .max_shards_of_learner = 4, .seed = 3}},
    {.name = "alone, one at a time expected: as many shards as a job of one has",
     .alone = true,
     .max_learners = 1,
     .want = {.global_batch_size = 256, .logical_shards = 2, .max_shards_of_learner = 2}},
    {.name = "alone, two expected",
     .alone = true,
     .max_learners = 2,
     .program = {.batch = 64},
     .want = {.global_batch_size = 64, .logical_shards = 4, .max_shards_of_learner = 4}},
    {.name = "alone, two expected, the program sets its shards",
     .alone = true,
     .max_learners = 2,
     .program = {.shards = 2},
     .want = {.global_batch_size = 256, .logical_shards = 2, .max_shards_of_learner = 2}},
    {.name = "in a job, nothing is set: eight learners are expected",
     .want = {.global_batch_size = 256, .logical_shards = 16, .max_shards_of_learner = 16}},
    {.name = "in a job of two",
     .max_learners = 2,
     .want = {.global_batch_size = 256, .logical_shards = 4, .max_shards_of_learner = 4}},
    {.name = "in a job whose batch has few divisors",
     .program = {.batch = 100},
     .want = {.global_batch_size = 100, .logical_shards = 4, .max_shards_of_learner = 4}},
    {.name = "the program repeats the job's values",
     .job = {64, 16, 0},
     .program = {64, 16, 0},
     .want = {.global_batch_size = 64, .logical_shards = 16, .max_shards_of_learner = 16}},
    {.name = "each sets something else",
     .job = {.batch = 64},
     .program = {.shards = 16, .seed = 9},
     .want =
         {.global_batch_size = 64, .logical_shards = 16, .max_shards_of_learner = 16, .seed = 9}},
    {.name = "another batch",
     .job = {.batch = 32},
     .program = {.batch = 16},
     .error = "the program's global batch size is 16, but the job's is 32: remove one or make them "
              "equal"},
    {.name = "other shards",
     .job = {.shards = 32},
     .program = {.shards = 16},
     .error = "the program's number of logical shards is 16, but the job's is 32: remove one or "
              "make them equal"},
    {.name = "another seed, of which 0 is one",
     .alone = true,
     .job = {.seed = 0},
     .program = {.seed = 4},
     .error = "the program's seed is 4, but the job's is 0: remove one or make them equal"},
    {.name = "the first contradiction is named",
     .job = {32, 8, 1},
     .program = {16, 4, 2},
     .error = "the program's global batch size is 16, but the job's is 32: remove one or make them "
              "equal"},
    {.name = "the largest batch",
     .alone = true,
     .program = {.batch = std::uint64_t{1} << 32},
     .want = {.global_batch_size = std::uint64_t{1} << 32}},
    {.name = "a batch that is too large",
     .alone = true,
     .program = {.batch = (std::uint64_t{1} << 32) + 1},
     .error = "the global batch size is 4294967297: it must be at most 4294967296"},
};

TEST(ResolveTraining, BringsJobAndProgramTogether) {
  for (const ResolveCase& c : kResolveCases) {
    LearnerEnvironment environment;
    if (!c.alone) environment.coordinator.emplace();
    environment.max_learners = c.max_learners;
    environment.global_batch_size = c.job.batch;
    environment.logical_shards = c.job.shards;
    environment.seed = c.job.seed;
    const auto setup = ResolveTraining(environment, {.global_batch_size = c.program.batch,
                                                     .logical_shards = c.program.shards,
                                                     .seed = c.program.seed});
    if (!c.error.empty()) {
      ASSERT_FALSE(setup) << c.name;
      EXPECT_EQ(setup.error().code, ErrorCode::kInvalid) << c.name;
      EXPECT_EQ(setup.error().message, c.error) << c.name;
    } else {
      ASSERT_TRUE(setup) << c.name << ": " << setup.error();
      EXPECT_EQ(setup->global_batch_size, c.want.global_batch_size) << c.name;
      EXPECT_EQ(setup->logical_shards, c.want.logical_shards) << c.name;
      EXPECT_EQ(setup->seed, c.want.seed) << c.name;
      EXPECT_EQ(*setup, c.want) << c.name;
    }
  }
}

TEST(ResolveTraining, AContradictionIsNamedAsItsAuthorsWroteIt) {
  LearnerEnvironment environment;
  environment.global_batch_size = 256;
  const ProgramSettings program = {
      .global_batch_size = 128,
      .names = {.global_batch_size = {.program = "train.batchSize of the model",
                                      .job = "globalBatchSize of the job"}}};
  EXPECT_EQ(ResolveTraining(environment, program).error().message,
            "train.batchSize of the model is 128, but globalBatchSize of the job is 256: remove "
            "one or make them equal");
}

TEST(ResolveTraining, TheProgramAloneSaysHowItsDataAreRead) {
  const auto setup =
      ResolveTraining({}, {.last_batch = LastBatch::kDrop, .order = DataOrder::kAsItLies});
  ASSERT_TRUE(setup);
  const auto schedule = ScheduleOf(*setup, {.train_samples = 600, .test_samples = 8, .epochs = 3});
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->spec(), (DataSpec{.train_samples = 600,
                                        .test_samples = 8,
                                        .epochs = 3,
                                        .global_batch_size = 256,
                                        .logical_shards = 1,
                                        .seed = 0,
                                        .last_batch = LastBatch::kDrop,
                                        .order = DataOrder::kAsItLies}));
  EXPECT_FALSE(ScheduleOf(*setup, {.train_samples = 0, .epochs = 3}));
}

TEST(ResolveTraining, ALearnersMostShardsAreThoseOfTheSmallestJob) {
  struct Case {
    int min_learners;
    int ranks;
    int want;
  };
  for (const Case& c : {Case{1, 1, 32}, Case{2, 1, 16}, Case{3, 1, 11}, Case{32, 1, 1},
                        Case{100, 1, 1}, Case{1, 8, 4}, Case{3, 4, 3}}) {
    LearnerEnvironment environment;
    environment.logical_shards = 32;
    environment.min_learners = c.min_learners;
    environment.ranks_per_learner = c.ranks;
    EXPECT_EQ(ResolveTraining(environment, {})->max_shards_of_learner, c.want)
        << c.min_learners << " learners of " << c.ranks << " ranks";
  }
  EXPECT_EQ(LearnerEnvironment().min_learners, 1) << "without a setting: all shards";
}

TEST(ResolveTraining, EveryRankOfAJobIsExpectedToHaveShards) {
  LearnerEnvironment environment;
  environment.coordinator.emplace();
  environment.max_learners = 4;
  environment.ranks_per_learner = 2;
  EXPECT_EQ(ResolveTraining(environment, {})->logical_shards, 16);
}

TEST(ScheduleOf, AProgramMayCountSteps) {
  const ProgramInfo info{
      .train_samples = 1000, .test_samples = 10, .max_steps = 40, .evaluate_every = 15};
  const auto schedule = ScheduleOf({.global_batch_size = 64, .logical_shards = 8}, info);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->total_steps(), 40U);
  EXPECT_EQ(schedule->total_ticks(), 43U);
}

TEST(ScheduleOf, ABatchMayGrowUpToItsMaximum) {
  const ProgramInfo info{.train_samples = 1000, .epochs = 2};
  TrainingSetup setup{.global_batch_size = 64, .logical_shards = 8};
  EXPECT_EQ(ScheduleOf(setup, info)->spec().max_doublings, 0);
  setup.max_batch_size = 300;
  EXPECT_EQ(ScheduleOf(setup, info)->spec().max_doublings, 2);
  setup.max_batch_size = 100;
  const auto small = ScheduleOf(setup, info);
  ASSERT_FALSE(small);
  EXPECT_NE(small.error().message.find("maxBatchSize: 100 is less than twice"), std::string::npos);
}

}  // namespace
}  // namespace pliant
