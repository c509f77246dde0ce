#include "trainer/protocol/team.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

Schedule ScheduleOfEightShards() {
  return *Schedule::Make({.train_samples = 64,
                          .test_samples = 0,
                          .epochs = 1,
                          .global_batch_size = 16,
                          .logical_shards = 8,
                          .seed = 1});
}

// One rank per letter and digit: learner and local rank.
Membership TeamMembers(const std::vector<std::string>& names) {
  Membership membership{.id = {1, 1}, .members = {}};
  for (const std::string& name : names) {
    membership.members.push_back(
        {.id = {.name = name.substr(0, 1), .pod_uid = "u", .nonce = 7, .local_rank = name[1] - '0'},
         .address = "x:1"});
  }
  return membership;
}

std::vector<std::size_t> ShardsEach(const ShardMap& map) {
  std::vector<std::size_t> sizes;
  for (int rank = 0; rank < map.world_size(); ++rank) sizes.push_back(map.ShardsOf(rank).size());
  return sizes;
}

TEST(Team, RanksOfOneLearnerShareAMachine) {
  const Schedule schedule = ScheduleOfEightShards();
  const WorkSplit split(schedule, Reproducibility::kBitwise);
  const Team team = MakeTeam(TeamMembers({"a0", "b0", "a1", "b1", "c0"}),
                             {true, true, true, true, true}, {{}, {}, {}, {}, {}}, split, 0);
  EXPECT_EQ(team.learner_of_rank, (std::vector<int>{0, 1, 0, 1, 4}));
  EXPECT_EQ(team.learners, 3);
}

TEST(Team, OnlyThoseInSyncCompute) {
  const Schedule schedule = ScheduleOfEightShards();
  const struct {
    const char* name;
    Reproducibility mode;
    std::vector<bool> in_sync;
    std::vector<std::size_t> shards;
  } kCases[] = {
      {"all", Reproducibility::kBitwise, {true, true, true}, {3, 3, 2}},
      {"the first catches up", Reproducibility::kBitwise, {false, true, true}, {0, 4, 4}},
      {"one alone", Reproducibility::kBitwise, {false, false, true}, {0, 0, 8}},
      {"a leaf each, and one to fill the tree up",
       Reproducibility::kStatistical,
       {true, true, true},
       {2, 1, 1}},
      {"leaves of the computing members",
       Reproducibility::kStatistical,
       {true, false, true},
       {1, 0, 1}},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    const WorkSplit split(schedule, test.mode);
    const Team team =
        MakeTeam(TeamMembers({"a0", "b0", "c0"}), test.in_sync, {{}, {}, {}}, split, 0);
    EXPECT_TRUE(IsComplete(team.tick_map()));
    EXPECT_EQ(ShardsEach(team.tick_map()), test.shards);
    EXPECT_EQ(team.members_in_sync(), std::ranges::count(test.in_sync, true));
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(team.IsInSync(rank), test.in_sync[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST(Team, FinishedPartsOfTheFirstTickAreNotComputedAgain) {
  const Schedule schedule = ScheduleOfEightShards();
  const WorkSplit split(schedule, Reproducibility::kBitwise);
  const NodeIndex half = NodeOf(8, {.first = 4, .count = 4});
  Team team = MakeTeam(TeamMembers({"a0", "b0"}), {true, true}, {{half}, {}}, split, 0);
  ASSERT_TRUE(team.redo);
  EXPECT_TRUE(IsComplete(team.tick_map()));
  EXPECT_EQ(team.tick_map(), team.redo->map);
  std::size_t left = 0;
  for (const auto& blocks : team.redo->to_compute) {
    for (const ShardBlock& block : blocks) {
      EXPECT_LT(block.first, 4);
      left += static_cast<std::size_t>(block.count);
    }
  }
  EXPECT_EQ(left, 4U);
  team.OnCommitted(TickKind::kTrain);
  EXPECT_FALSE(team.redo) << "it applied only to that tick";
  EXPECT_EQ(ShardsEach(team.tick_map()), (std::vector<std::size_t>{4, 4}));
}

TEST(Team, AMemberThatComesInSyncComputesFromTheNextTick) {
  const Schedule schedule = ScheduleOfEightShards();
  const WorkSplit split(schedule, Reproducibility::kBitwise);
  Team team = MakeTeam(TeamMembers({"a0", "b0", "c0", "d0"}), {true, false, false, false},
                       {{}, {}, {}, {}}, split, 0);
  EXPECT_EQ(ShardsEach(team.tick_map()), (std::vector<std::size_t>{8, 0, 0, 0}));
  team.OnCommitted(TickKind::kTrain);
  team.OnCommitted(TickKind::kEvaluate);
  EXPECT_EQ(team.steps, 1U);
  team.OnCameInSync({1, 3}, split, 1);
  EXPECT_EQ(team.steps, 0U) << "that these members took together";
  EXPECT_EQ(team.in_sync, (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(ShardsEach(team.tick_map()), (std::vector<std::size_t>{3, 3, 0, 2}));
  team.OnCameInSync({}, split, 1);
  EXPECT_EQ(team.members_in_sync(), 3);
}

}  // namespace
}  // namespace pliant
