#include "simulator/events/profiled_work.h"

#include <memory>

#include <gtest/gtest.h>

#include "tests/unit/simulator/small_profile.h"

// By hand, from the tables in small_profile.h. Epoch 0 ends at progress 100, epoch 1 at 200.
namespace pliant::simulator {
namespace {

class ProfiledWorkTest : public ::testing::Test {
 protected:
  ProfiledWork Work(BatchRule rule, int batch = 8) const {
    return {profile_, std::make_shared<PackedTimes>(profile_, 4, 2), batch, rule, 2};
  }

  const Profile profile_{SmallTables()};
};

TEST_F(ProfiledWorkTest, AFixedBatchStays) {
  const ProfiledWork work = Work(BatchRule::kFixed);
  EXPECT_EQ(work.Begin({}, {1}, nullptr).batch, 8);
  EXPECT_EQ(work.Begin({.phase = 1, .progress = 100, .batch = 8}, {2}, nullptr).batch, 8);
  // 1 s a step alone; with two learners 0.5 s, and 1 s of synchronisation.
  EXPECT_EQ(work.Speeds({}, nullptr), (planner::SpeedCurve{1000, 667}));
  EXPECT_DOUBLE_EQ(work.Rate({.batch = 8}, {2}), 1 / 1.5);
  EXPECT_DOUBLE_EQ(work.SecondsAlone({}), 200);
  EXPECT_DOUBLE_EQ(work.SecondsAlone({.phase = 1, .progress = 150, .batch = 8}), 50);
  EXPECT_EQ(work.SecondsAlone({.phase = 2, .progress = 200, .batch = 8}), 0);
  EXPECT_FALSE(work.IsDone({.phase = 1}));
  EXPECT_TRUE(work.IsDone({.phase = 2}));
}

TEST_F(ProfiledWorkTest, ARecordedBatchIsTheFastestOfItsNodes) {
  const ProfiledWork work = Work(BatchRule::kRecorded);
  // With two learners, steps of 8, 16 and 32 samples take 1.5, 2 and 3 s, and train 1, 1.39 and
  // 1.39 times as far as one of 8.
  EXPECT_EQ(work.Begin({}, {2}, nullptr).batch, 16);
  // In epoch 1 gradients are only noise: twice the batch trains twice as far.
  EXPECT_EQ(work.Begin({.phase = 1, .progress = 100, .batch = 16}, {2}, nullptr).batch, 32);
  EXPECT_EQ(work.Speeds({.phase = 1, .progress = 100, .batch = 32}, nullptr),
            (planner::SpeedCurve{1000, 1333}));
}

TEST_F(ProfiledWorkTest, ABatchFromTheStateFollowsTheNoiseOfTheEpochBefore) {
  const ProfiledWork work = Work(BatchRule::kFromState);
  EXPECT_EQ(work.Begin({}, {2}, nullptr).batch, 8);
  // The noise scale is 3 smallest batches: half of it is less than 16 samples.
  EXPECT_EQ(work.Begin({.phase = 1, .progress = 100, .batch = 8}, {2}, nullptr).batch, 8);
  ProfileTables tables = SmallTables();
  for (Validation& table : tables.validations) table.epochs[0].gradients = {1, 9};
  const Profile noisy(tables);
  const ProfiledWork of_noisy(noisy, std::make_shared<PackedTimes>(noisy, 4, 2), 8,
                              BatchRule::kFromState, 2);
  EXPECT_EQ(of_noisy.Begin({.phase = 1, .progress = 100, .batch = 8}, {2}, nullptr).batch, 32);
  EXPECT_EQ(of_noisy.Begin({.phase = 1, .progress = 100, .batch = 8}, {1}, nullptr).batch, 32)
      << "the same on other nodes";
}

TEST_F(ProfiledWorkTest, ABatchIsOnlyForLearnersThatHaveSamples) {
  const PackedTimes times(profile_, 4, 8);
  ASSERT_EQ(times.With(2).size(), 3u);
  EXPECT_EQ(times.With(2).front().candidate, 8);
  ASSERT_EQ(times.With(8).size(), 1u) << "each has at least 4 samples";
  EXPECT_EQ(times.With(8).front().candidate, 32);
}

}  // namespace
}  // namespace pliant::simulator
