#include "trainer/protocol/work_split.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/protocol/uneven_schedule.h"

namespace pliant {
namespace {

TEST(WorkSplit, BitwiseIsTheShardsOfTheJobForAnySize) {
  const Schedule schedule = UnevenSchedule();
  const WorkSplit split(schedule, Reproducibility::kBitwise);
  for (const int world : {1, 3, 16, 20}) {
    EXPECT_EQ(split.MapOf(1, world), AssignShards(16, world));
    for (int shard = 0; shard < 16; ++shard) {
      EXPECT_EQ(split.TaskOf(1, world, shard).samples, schedule.TaskOf(1, shard).samples);
      EXPECT_EQ(split.SamplesOf(1, world, shard), schedule.TaskOf(1, shard).samples.size());
      EXPECT_EQ(split.TaskOf(1, world, shard).seed, schedule.TaskOf(1, shard).seed);
    }
  }
}

TEST(WorkSplit, ADoubledBatchHasTwiceTheShards) {
  DataSpec spec = UnevenSchedule().spec();
  spec.max_doublings = 1;
  const Schedule schedule = *Schedule::Make(spec, {{.epoch = 1, .doublings = 1}});
  const WorkSplit split(schedule, Reproducibility::kBitwise);
  const Tick doubled = schedule.TicksBefore(1);
  EXPECT_EQ(split.MapOf(doubled - 1, 3).logical_shards, 16);
  EXPECT_EQ(split.MapOf(doubled, 3), AssignShards(32, 3));
  EXPECT_EQ(split.TaskOf(doubled, 3, 31).samples, schedule.TaskOf(doubled, 31).samples);
  EXPECT_EQ(split.SamplesOf(doubled, 3, 31), schedule.TaskOf(doubled, 31).samples.size());
}

TEST(WorkSplit, StatisticalIsOneBatchALearnerOfAboutEqualSize) {
  const Schedule schedule = UnevenSchedule();
  const WorkSplit split(schedule, Reproducibility::kStatistical);
  for (int world = 1; world <= 16; ++world) {
    const ShardMap map = split.MapOf(0, world);
    ASSERT_TRUE(IsComplete(map));
    EXPECT_EQ(map.world_size(), world);
    for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
      SCOPED_TRACE(testing::Message() << "tick " << tick << ", " << world << " learners");
      std::vector<std::uint64_t> used;
      std::size_t least = 1000;
      std::size_t most = 0;
      for (int rank = 0; rank < world; ++rank) {
        ASSERT_EQ(map.blocks_of_rank[rank].size(), 1U) << "one node to send";
        std::size_t batches = 0;
        std::size_t samples = 0;
        for (const int shard : map.ShardsOf(rank)) {
          const ShardTask task = split.TaskOf(tick, world, shard);
          EXPECT_EQ(task.shard, shard);
          EXPECT_EQ(split.SamplesOf(tick, world, shard), task.samples.size());
          batches += task.samples.empty() ? 0 : 1;
          samples += task.samples.size();
          used.insert(used.end(), task.samples.begin(), task.samples.end());
        }
        EXPECT_LE(batches, 1U);
        least = std::min(least, samples);
        most = std::max(most, samples);
      }
      EXPECT_LE(most - least, 1U);
      EXPECT_FALSE(split.TaskOf(tick, world, 0).samples.empty()) << "its buffers are kept";

      std::vector<std::uint64_t> all;
      for (int shard = 0; shard < 16; ++shard) {
        const ShardTask task = schedule.TaskOf(tick, shard);
        all.insert(all.end(), task.samples.begin(), task.samples.end());
      }
      EXPECT_EQ(used, all) << "the samples of the tick, each once, in their order";
    }
  }
}

}  // namespace
}  // namespace pliant
