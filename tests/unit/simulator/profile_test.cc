#include "simulator/model/profile.h"

#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

TEST(ProfileTest, BoundsAreTheSmallestOfAllTables) {
  const Profile profile(SmallTables());
  EXPECT_EQ(profile.ProgressBound(0), 100);
  EXPECT_EQ(profile.ProgressBound(1), 200);
  EXPECT_EQ(profile.ProgressBound(2), 200) << "there is no third epoch";
  EXPECT_EQ(profile.ProgressBound(-1), 100);
}

TEST(ProfileTest, StatisticsAreLinearInTheBatch) {
  const Profile profile(SmallTables());
  EXPECT_EQ(profile.Gradients(0, 8), (GradientStats{.square = 1, .variance = 3}));
  EXPECT_EQ(profile.Gradients(0, 14), (GradientStats{.square = 2, .variance = 3}));
  EXPECT_EQ(profile.Gradients(0, 32), (GradientStats{.square = 5, .variance = 3}));
  EXPECT_EQ(profile.Gradients(1, 20), (GradientStats{.square = 0, .variance = 2}));
  EXPECT_EQ(profile.Iterations(0, 20), 70);
  EXPECT_EQ(profile.Iterations(1, 32), 80);
}

TEST(ProfileTest, OutsideTheTablesTheNearestCounts) {
  const Profile profile(SmallTables());
  EXPECT_EQ(profile.Gradients(0, 1), profile.Gradients(0, 8));
  EXPECT_EQ(profile.Gradients(9, 99), profile.Gradients(1, 32));
  EXPECT_EQ(profile.Iterations(-5, 33), 40);
}

TEST(ProfileTest, LearnersAreLimitedByTheBatchAndByTheApplication) {
  ProfileTables tables = SmallTables();
  const Profile profile(tables);
  EXPECT_EQ(profile.MaxLearners(8), 2);
  EXPECT_EQ(profile.MaxLearners(11), 2);
  EXPECT_EQ(profile.MaxLearners(2), 1);
  tables.max_gpus = 1;
  EXPECT_EQ(Profile(std::move(tables)).MaxLearners(32), 1);
}

TEST(ProfilesTest, AreFoundByName) {
  const Profiles profiles = SmallProfiles();
  EXPECT_EQ(profiles.Find("small"), 0U);
  EXPECT_EQ(profiles.Find("large"), std::nullopt);
  EXPECT_EQ(profiles.Names(), "small");
}

}  // namespace
}  // namespace pliant::simulator
