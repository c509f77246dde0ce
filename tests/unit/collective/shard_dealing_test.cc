#include "trainer/collective/shard_dealing.h"

#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

using Blocks = std::vector<ShardBlock>;

TEST(ShardDealing, DealsWhatNobodyHasFinished) {
  const struct {
    const char* name;
    std::vector<Blocks> finished;
    std::vector<Blocks> want;        // everything that each rank contributes to the tick
    std::vector<Blocks> to_compute;  // the part of it that each rank has to compute
  } kCases[] = {
      {"nothing is finished: as at any other tick", {{}, {}, {}}, {}, {}},
      {"the shards of a third one are missing",
       {{{0, 2}}, {{2, 2}}},
       {{{0, 2}, {4, 2}}, {{2, 2}, {6, 2}}},
       {{{4, 2}}, {{6, 2}}}},
      {"all was finished but sent", {{{0, 4}}, {{4, 4}}}, {{{0, 4}}, {{4, 4}}}, {{}, {}}},
      {"finished shards do not reduce a rank's share: all begin at the same time",
       {{{0, 4}, {4, 1}}, {}},
       {{{0, 4}, {4, 1}, {5, 1}, {6, 1}}, {{7, 1}}},
       {{{5, 1}, {6, 1}}, {{7, 1}}}},
      {"the partial sum of a block counts",
       {{{0, 2}, {2, 1}}, {{4, 1}}},
       {{{0, 2}, {2, 1}, {3, 1}, {5, 1}}, {{4, 1}, {6, 2}}},
       {{{3, 1}, {5, 1}}, {{6, 2}}}},
      {"two finished the same: the first of them",
       {{{4, 4}}, {{4, 4}}},
       {{{0, 2}, {4, 4}}, {{2, 2}}},
       {{{0, 2}}, {{2, 2}}}},
      {"one finished a part of what another did",
       {{{4, 2}}, {{4, 4}}},
       {{{0, 2}}, {{2, 2}, {4, 4}}},
       {{{0, 2}}, {{2, 2}}}},
      {"more learners than shards are missing",
       {{{0, 4}, {4, 2}}, {}, {}},
       {{{0, 4}, {4, 2}, {6, 1}}, {{7, 1}}, {}},
       {{{6, 1}}, {{7, 1}}, {}}},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    std::vector<std::vector<NodeIndex>> finished;
    for (const Blocks& blocks : test.finished) {
      finished.emplace_back();
      for (const ShardBlock block : blocks) finished.back().push_back(NodeOf(8, block));
    }
    const ShardDealing dealing =
        ReassignMissingShards(8, finished, std::vector<bool>(finished.size(), true));
    EXPECT_TRUE(IsComplete(dealing.map));
    if (test.to_compute.empty()) {
      EXPECT_EQ(dealing.map, AssignShards(8, 3));
      EXPECT_EQ(dealing.to_compute, dealing.map.blocks_of_rank);
      continue;
    }
    EXPECT_EQ(dealing.map.blocks_of_rank, test.want);
    EXPECT_EQ(dealing.to_compute, test.to_compute);
  }
}

TEST(ShardDealing, FollowersComputeNothing) {
  const std::vector<bool> computes = {true, false, true};
  EXPECT_EQ(AssignShardsAmong(8, computes).blocks_of_rank,
            (std::vector<Blocks>{{{0, 4}}, {}, {{4, 4}}}));
  const ShardDealing nothing = ReassignMissingShards(8, {{}, {}, {}}, computes);
  EXPECT_EQ(nothing.map, AssignShardsAmong(8, computes));
  const ShardDealing rest = ReassignMissingShards(8, {{NodeOf(8, {0, 4})}, {}, {}}, computes);
  EXPECT_TRUE(IsComplete(rest.map));
  EXPECT_EQ(rest.to_compute, (std::vector<Blocks>{{{4, 2}}, {}, {{6, 2}}}));
}

}  // namespace
}  // namespace pliant
