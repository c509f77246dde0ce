#include "trainer/protocol/spot_check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

Schedule ScheduleWithSeed(std::uint64_t seed) {
  return *Schedule::Make({.train_samples = 64,
                          .test_samples = 0,
                          .epochs = 1,
                          .global_batch_size = 16,
                          .logical_shards = 8,
                          .seed = seed});
}

Team TeamOf(std::vector<bool> in_sync, const WorkSplit& split, std::uint64_t steps = 7) {
  Membership membership{.id = {1, 1}, .members = {}};
  for (std::size_t i = 0; i < in_sync.size(); ++i) {
    membership.members.push_back(
        {.id = {.name = std::string(1, static_cast<char>('a' + i))}, .address = "x:1"});
  }
  const std::vector<std::vector<NodeIndex>> finished(in_sync.size());
  Team team = MakeTeam(membership, std::move(in_sync), finished, split, 0);
  team.redo.reset();
  team.steps = steps;
  return team;
}

TEST(SpotCheck, ComesOnceInEachRangeOfSteps) {
  std::set<std::pair<int, int>> pairs;
  std::set<std::uint64_t> places;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Schedule schedule = ScheduleWithSeed(seed);
    const WorkSplit split(schedule, Reproducibility::kBitwise);
    const Team team = TeamOf({true, true, false, true}, split);
    for (std::uint64_t range = 0; range < 50; ++range) {
      int checks = 0;
      for (std::uint64_t i = 0; i < SpotCheck::kEverySteps; ++i) {
        const auto check = SpotCheckOf(range * SpotCheck::kEverySteps + i, team, split);
        if (!check) continue;
        ++checks;
        places.insert(i);
        pairs.insert({check->owner, check->checker});
        EXPECT_TRUE(std::ranges::contains(team.map.ShardsOf(check->owner), check->shard));
        EXPECT_NE(check->owner, check->checker);
        EXPECT_TRUE(team.IsInSync(check->checker)) << "one that catches up computes nothing";
      }
      EXPECT_EQ(checks, 1) << range;
    }
  }
  EXPECT_EQ(pairs.size(), 6U) << "all ranks in sync check, and are checked";
  EXPECT_GT(places.size(), 50U);
}

TEST(SpotCheck, TheNewestIsCheckedAfterItsFirstStep) {
  const Schedule schedule = ScheduleWithSeed(1);
  const WorkSplit split(schedule, Reproducibility::kBitwise);
  for (std::uint64_t step = 0; step < 100; ++step) {
    const auto check = SpotCheckOf(step, TeamOf({true, true, true}, split, 1), split);
    ASSERT_TRUE(check);
    EXPECT_TRUE(check->owner == 2 || check->checker == 2);
  }
}

TEST(SpotCheck, IsNotForThoseWithNothingToCompare) {
  const Schedule schedule = ScheduleWithSeed(1);
  const WorkSplit bitwise(schedule, Reproducibility::kBitwise);
  const WorkSplit statistical(schedule, Reproducibility::kStatistical);
  EXPECT_TRUE(SpotCheckOf(3, TeamOf({true, true}, bitwise, 1), bitwise));
  EXPECT_FALSE(SpotCheckOf(3, TeamOf({true, false}, bitwise, 1), bitwise)) << "alone";
  EXPECT_FALSE(SpotCheckOf(3, TeamOf({true, true}, statistical, 1), statistical));
  Team redoing = TeamOf({true, true}, bitwise, 1);
  redoing.redo = ShardDealing{.map = redoing.map, .to_compute = {{}, {}}};
  EXPECT_FALSE(SpotCheckOf(3, redoing, bitwise));
}

TEST(SpotCheck, ADigestChangesWithAnyBit) {
  std::uint64_t gradient = 1;
  const ShardSums sums{.samples = 4, .loss = 0.5, .correct = 2};
  std::array<std::byte, 2> buffers = {};
  const std::uint64_t before = DigestOfShard(gradient, buffers, sums);
  EXPECT_EQ(DigestOfShard(gradient, buffers, sums), before);
  const ShardSums weighed{.samples = 4, .loss = 0.5, .correct = 2, .weight = 4};
  EXPECT_NE(DigestOfShard(gradient, buffers, weighed), before);
  const ShardSums named{.samples = 4, .loss = 0.5, .correct = 2, .named = {{"a", 0}}};
  EXPECT_NE(DigestOfShard(gradient, buffers, named), before);
  for (double ShardSums::* const field :
       {&ShardSums::samples, &ShardSums::loss, &ShardSums::correct}) {
    ShardSums other = sums;
    other.*field += 1;
    EXPECT_NE(DigestOfShard(gradient, buffers, other), before);
  }
  buffers[1] = std::byte{1};
  EXPECT_NE(DigestOfShard(gradient, buffers, sums), before);
  buffers[1] = {};
  gradient = 2;
  EXPECT_NE(DigestOfShard(gradient, buffers, sums), before);
}

}  // namespace
}  // namespace pliant
