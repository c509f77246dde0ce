#include "trainer/binding/shard_forecast.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/protocol/uneven_schedule.h"
#include "trainer/protocol/work_split.h"

namespace pliant {
namespace {

// The shards that a learner computes in one tick predict those of the following ticks.
void KnowsTheNextBatches(const Schedule& schedule) {
  for (const Reproducibility mode : {Reproducibility::kBitwise, Reproducibility::kStatistical}) {
    const WorkSplit split(schedule, mode);
    for (const int world : {1, 3}) {
      std::vector<ShardTask> tasks;  // of rank 0, in order
      for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
        for (const int shard : split.MapOf(tick, world).ShardsOf(0)) {
          ShardTask task = split.TaskOf(tick, world, shard);
          if (!task.samples.empty()) tasks.push_back(std::move(task));
        }
      }
      ShardForecast forecast(schedule, 0);
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        forecast.OnTask(tasks[i]);
        if (tasks[i].step == 0) {
          EXPECT_FALSE(forecast.After(0)) << "nothing is known yet";
          continue;
        }
        for (std::size_t ahead = 0; ahead < 3; ++ahead) {
          const std::optional<ShardTask> told = forecast.After(ahead);
          ASSERT_EQ(told.has_value(), i + 1 + ahead < tasks.size());
          if (!told) continue;
          const ShardTask& want = tasks[i + 1 + ahead];
          EXPECT_EQ(told->samples, want.samples);
          EXPECT_EQ(told->seed, want.seed);
          EXPECT_EQ(told->shard, want.shard);
        }
      }
    }
  }
}

TEST(ShardForecast, KnowsTheNextBatchesInBothModes) { KnowsTheNextBatches(UnevenSchedule()); }

TEST(ShardForecast, KnowsTheNextBatchesOfATrainingInSteps) {
  DataSpec spec = UnevenSchedule().spec();
  spec.max_steps = StepsPerEpoch(spec.train_samples, spec.global_batch_size) + 1;
  KnowsTheNextBatches(*Schedule::Make(spec));
  for (const std::uint64_t every : {1, 2, 3}) {
    spec.evaluate_every = every;
    KnowsTheNextBatches(*Schedule::Make(spec));
  }
}

TEST(ShardForecast, DoesNotGuessTheBatchOfTheNextEpoch) {
  DataSpec spec = UnevenSchedule().spec();
  spec.max_doublings = 1;
  const Schedule before = *Schedule::Make(spec);
  const Schedule after = *before.With({{.epoch = 1, .doublings = 1}});
  std::vector<ShardTask> tasks;  // of a learner alone
  for (Tick tick = 0; tick < after.total_ticks(); ++tick) {
    const Schedule& schedule = tick < after.TicksBefore(1) ? before : after;
    for (int shard = 0; shard < schedule.ShardsAt(tick); ++shard) {
      ShardTask task = schedule.TaskOf(tick, shard);
      if (!task.samples.empty()) tasks.push_back(std::move(task));
    }
  }
  ShardForecast forecast(before, spec.logical_shards);
  for (std::size_t i = 0; i + 1 < tasks.size(); ++i) {
    forecast.OnTask(tasks[i]);
    const std::optional<ShardTask> told = forecast.After(0);
    const ShardTask& want = tasks[i + 1];
    ASSERT_EQ(told.has_value(), want.epoch == tasks[i].epoch) << i;
    if (!told) continue;
    EXPECT_EQ(told->samples, want.samples);
    EXPECT_EQ(told->seed, want.seed);
    EXPECT_EQ(told->shard, want.shard);
  }
}

}  // namespace
}  // namespace pliant
