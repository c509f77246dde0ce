#include "simulator/model/job_model.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

struct SplitCase {
  int batch = 0;
  int learners = 0;
  Alone alone = Alone::kAccumulatesAboveMinBatch;
  BatchSplit want;
  int want_batch = 0;
};

TEST(SplitBatchTest, Cases) {
  constexpr Alone kTrains = Alone::kAccumulatesAboveMinBatch;
  constexpr Alone kPredicts = Alone::kAlwaysAccumulates;
  // Local batches of at most 16, batches of at most 32, of at least 8.
  const SplitCase kCases[] = {
      {8, 1, kTrains, {.learners = 1, .local = 8, .accumulations = 0, .atomic = 8}, 8},
      {8, 1, kPredicts, {.learners = 1, .local = 8, .accumulations = 1, .atomic = 4}, 8},
      // One learner alone accumulates above the smallest batch.
      {9, 1, kTrains, {.learners = 1, .local = 9, .accumulations = 1, .atomic = 5}, 10},
      {32, 1, kTrains, {.learners = 1, .local = 32, .accumulations = 1, .atomic = 16}, 32},
      {16, 2, kTrains, {.learners = 2, .local = 8, .accumulations = 0, .atomic = 8}, 16},
      {16, 2, kPredicts, {.learners = 2, .local = 8, .accumulations = 0, .atomic = 8}, 16},
      // Rounded up, the batch would exceed 32.
      {32, 3, kTrains, {.learners = 3, .local = 11, .accumulations = 0, .atomic = 10}, 30},
      {19, 3, kTrains, {.learners = 3, .local = 7, .accumulations = 0, .atomic = 7}, 21},
      // More learners than samples.
      {32, 40, kTrains, {.learners = 40, .local = 1, .accumulations = 0, .atomic = 1}, 40},
  };
  const Profile profile(SmallTables());
  for (const SplitCase& each : kCases) {
    const BatchSplit split = SplitBatch(profile, each.batch, each.learners, each.alone);
    EXPECT_EQ(split, each.want) << each.batch << " on " << each.learners;
    EXPECT_EQ(split.batch(), each.want_batch) << each.batch << " on " << each.learners;
  }
}

TEST(SplitBatchTest, ALargeLocalBatchIsAccumulated) {
  ProfileTables tables = SmallTables();
  tables.max_local = 5;
  const Profile profile(tables);
  EXPECT_EQ(SplitBatch(profile, 32, 2),
            (BatchSplit{.learners = 2, .local = 16, .accumulations = 3, .atomic = 4}));
}

TEST(JobModelTest, PartsThatAreAccumulatedDoNotSynchronise) {
  const Profile profile(SmallTables());
  // Two learners, 8 samples: 1 s of computation, 1 s of synchronisation.
  EXPECT_EQ(StepSeconds(profile, {1, 1}, {.learners = 2, .local = 8, .atomic = 8}), 2);
  EXPECT_EQ(
      StepSeconds(profile, {1, 1}, {.learners = 2, .local = 24, .accumulations = 2, .atomic = 8}),
      4);
}

TEST(JobModelTest, GainAndNoiseScaleOfAllGradients) {
  EXPECT_EQ(Gain({.square = 1, .variance = 3}, 3), 2);
  EXPECT_EQ(Gain({.square = 1, .variance = 3}, 1), 1);
  EXPECT_EQ(Gain({.square = 0, .variance = 3}, 4), 4) << "only noise: each sample counts";
  EXPECT_EQ(Gain({.square = 2, .variance = 0}, 4), 1) << "no noise: more samples do not help";
  EXPECT_EQ(Gain({}, 4), 1);
  EXPECT_EQ(NoiseScale({.square = 2, .variance = 3}), 1.5);
  EXPECT_EQ(NoiseScale({.square = 0, .variance = 3}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(NoiseScale({.square = 2, .variance = 0}), 0);
  EXPECT_EQ(NoiseScale({}), 0);
}

TEST(JobModelTest, GoodputIsGainPerStepTime) {
  const Profile profile(SmallTables());
  // Scale 4, square 5, variance 3: gain 8 / 5.75. A step takes 2 + 1 s.
  const BatchSplit split = SplitBatch(profile, 32, 2);
  EXPECT_DOUBLE_EQ(Goodput(profile, 0, {2}, split), 8 / 5.75 / 3);
  EXPECT_EQ(Goodput(profile, 0, {2}, 32), Goodput(profile, 0, {2}, split));
  // In the second epoch there is only noise.
  EXPECT_DOUBLE_EQ(Goodput(profile, 1, {2}, split), 4.0 / 3);
}

struct AdvanceCase {
  Training training;
  double goodput = 0;
  std::int64_t seconds = 0;
  Training want;
  std::int64_t want_seconds = 0;
  bool want_ended = false;
};

TEST(AdvanceTest, EndsOfEpochsAreWholeSeconds) {
  const AdvanceCase kCases[] = {
      {{0, 0}, 1, 60, {0, 60}, 60, false},
      {{0, 60}, 1, 60, {1, 100}, 40, true},
      {{0, 40}, 1, 60, {1, 100}, 60, true},
      // 2.5 and 3.5 s: to the even second.
      {{0, 95}, 2, 60, {1, 100}, 2, true},
      {{0, 93}, 2, 60, {1, 100}, 4, true},
      // Never more than there is.
      {{0, 93}, 2, 3, {0, 99}, 3, false},
      {{0, 99.9}, 1, 60, {1, 100}, 0, true},
      {{1, 100}, 2, 60, {2, 200}, 50, true},
  };
  const Profile profile(SmallTables());
  for (const AdvanceCase& each : kCases) {
    const Advanced got = Advance(profile, each.training, each.goodput, each.seconds);
    EXPECT_EQ(got.training, each.want) << each.training.progress;
    EXPECT_EQ(got.seconds, each.want_seconds) << each.training.progress;
    EXPECT_EQ(got.ended_epoch, each.want_ended) << each.training.progress;
  }
}

TEST(AdvanceTest, ATrainingIsDoneAfterItsLastEpoch) {
  const Profile profile(SmallTables());
  EXPECT_FALSE(IsDone(profile, {.epoch = 1, .progress = 199}));
  EXPECT_TRUE(IsDone(profile, {.epoch = 2, .progress = 200}));
  EXPECT_EQ(ProgressLeft(profile, {.epoch = 1, .progress = 150}), 50);
  EXPECT_EQ(ProgressLeft(profile, {.epoch = 0, .progress = 150}), 0);
}

}  // namespace
}  // namespace pliant::simulator
