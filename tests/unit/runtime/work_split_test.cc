#include "trainer/runtime/work_split.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/runtime/shard_forecast.h"

namespace pliant {
namespace {

Schedule TheSchedule() {
  // Batches of 64, 64 and 22; an evaluation of 10.
  return *Schedule::Make({.train_samples = 150,
                          .test_samples = 10,
                          .epochs = 2,
                          .global_batch_size = 64,
                          .logical_shards = 16,
                          .seed = 5});
}

TEST(WorkSplit, BitwiseIsTheShardsOfTheJobForAnySize) {
  const Schedule schedule = TheSchedule();
  const WorkSplit split(schedule, Reproducibility::kBitwise);
  for (const int world : {1, 3, 16, 20}) {
    EXPECT_EQ(split.MapOf(world), AssignShards(16, world));
    for (int shard = 0; shard < 16; ++shard) {
      EXPECT_EQ(split.TaskOf(1, world, shard).samples, schedule.TaskOf(1, shard).samples);
      EXPECT_EQ(split.TaskOf(1, world, shard).seed, schedule.TaskOf(1, shard).seed);
    }
  }
}

TEST(WorkSplit, StatisticalIsOneBatchALearnerOfAboutEqualSize) {
  const Schedule schedule = TheSchedule();
  const WorkSplit split(schedule, Reproducibility::kStatistical);
  for (int world = 1; world <= 16; ++world) {
    const ShardMap map = split.MapOf(world);
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
          batches += task.samples.empty() ? 0 : 1;
          samples += task.samples.size();
          used.insert(used.end(), task.samples.begin(), task.samples.end());
        }
        EXPECT_LE(batches, 1U);
        least = std::min(least, samples);
        most = std::max(most, samples);
      }
      EXPECT_LE(most - least, 1U);
      EXPECT_FALSE(split.TaskOf(tick, world, 0).samples.empty()) << "whose buffers are kept";

      std::vector<std::uint64_t> all;
      for (int shard = 0; shard < 16; ++shard) {
        const ShardTask task = schedule.TaskOf(tick, shard);
        all.insert(all.end(), task.samples.begin(), task.samples.end());
      }
      EXPECT_EQ(used, all) << "the samples of the tick, each once, in their order";
    }
  }
}

// What a learner is asked for in one tick tells what it will be asked for in those after it.
TEST(ShardForecast, KnowsTheNextBatchesInBothModes) {
  const Schedule schedule = TheSchedule();
  for (const Reproducibility mode : {Reproducibility::kBitwise, Reproducibility::kStatistical}) {
    const WorkSplit split(schedule, mode);
    for (const int world : {1, 3}) {
      std::vector<ShardTask> tasks;  // of rank 0, in order
      for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
        for (const int shard : split.MapOf(world).ShardsOf(0)) {
          ShardTask task = split.TaskOf(tick, world, shard);
          if (!task.samples.empty()) tasks.push_back(std::move(task));
        }
      }
      ShardForecast forecast(schedule, 0);
      ShardTask told;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        forecast.OnTask(tasks[i]);
        if (tasks[i].step == 0) {
          EXPECT_FALSE(forecast.After(0, told)) << "nothing to go by yet";
          continue;
        }
        for (std::size_t ahead = 0; ahead < 3; ++ahead) {
          const bool is_told = forecast.After(ahead, told);
          ASSERT_EQ(is_told, i + 1 + ahead < tasks.size());
          if (!is_told) continue;
          const ShardTask& want = tasks[i + 1 + ahead];
          EXPECT_EQ(told.samples, want.samples);
          EXPECT_EQ(told.seed, want.seed);
          EXPECT_EQ(told.shard, want.shard);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pliant
