#include "trainer/data/schedule.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using ::testing::HasSubstr;

DataSpec Digits() {
  return {.train_samples = 1437,
          .test_samples = 360,
          .epochs = 3,
          .global_batch_size = 256,
          .logical_shards = 32,
          .seed = 7};
}

Schedule MakeOrDie(const DataSpec& spec) {
  auto schedule = Schedule::Make(spec);
  EXPECT_TRUE(schedule) << schedule.error();
  return *schedule;
}

TEST(Schedule, NamesTheFieldThatIsWrong) {
  struct Case {
    std::string field;
    DataSpec spec;
  };
  const auto with = [](auto change) {
    DataSpec spec = Digits();
    change(spec);
    return spec;
  };
  const Case cases[] = {
      {"trainSamples", with([](DataSpec& s) { s.train_samples = 0; })},
      {"trainSamples", with([](DataSpec& s) { s.train_samples = UINT64_MAX; })},
      {"testSamples", with([](DataSpec& s) { s.test_samples = UINT64_MAX; })},
      {"epochs", with([](DataSpec& s) { s.epochs = 0; })},
      {"epochs", with([](DataSpec& s) { s.epochs = UINT64_MAX; })},
      {"logicalShards", with([](DataSpec& s) { s.logical_shards = 0; })},
      {"logicalShards", with([](DataSpec& s) { s.logical_shards = 24; })},
      {"logicalShards", with([](DataSpec& s) { s.logical_shards = -32; })},
      {"logicalShards", with([](DataSpec& s) { s.logical_shards = 1 << 17; })},
      {"globalBatchSize", with([](DataSpec& s) { s.global_batch_size = 0; })},
      {"globalBatchSize", with([](DataSpec& s) { s.global_batch_size = 250; })},
      {"lastBatch", with([](DataSpec& s) {
         s.train_samples = 255;
         s.last_batch = LastBatch::kDrop;
       })},
  };
  for (const Case& c : cases) {
    const auto schedule = Schedule::Make(c.spec);
    ASSERT_FALSE(schedule) << c.field;
    EXPECT_EQ(schedule.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(schedule.error().message, HasSubstr(c.field + ": "));
  }
  EXPECT_TRUE(Validate(Digits()));
}

TEST(Schedule, AnEpochIsItsStepsAndThenItsEvaluation) {
  const Schedule schedule = MakeOrDie(Digits());
  EXPECT_EQ(schedule.steps_per_epoch(), 6U);
  EXPECT_EQ(schedule.TicksBefore(1), 8U);
  EXPECT_EQ(schedule.total_ticks(), 24U);
  EXPECT_EQ(schedule.total_steps(), 18U);

  const TickPlan last_step{.epoch = 1,
                           .step = 11,
                           .first_sample = 1280,
                           .samples = 157,
                           .last_of_kind = true,
                           .schedule_step = 11};
  EXPECT_EQ(schedule.At(13), last_step);
  const TickPlan first_slice{.kind = TickKind::kEvaluate, .epoch = 1, .step = 12, .samples = 256};
  EXPECT_EQ(schedule.At(14), first_slice);
  const TickPlan last_slice{.kind = TickKind::kEvaluate,
                            .epoch = 1,
                            .step = 12,
                            .first_sample = 256,
                            .samples = 104,
                            .last_of_kind = true,
                            .last_of_epoch = true};
  EXPECT_EQ(schedule.At(15), last_slice);
  const TickPlan next_epoch{.epoch = 2, .step = 12, .samples = 256, .schedule_step = 12};
  EXPECT_EQ(schedule.At(16), next_epoch);

  EXPECT_EQ(schedule.StepsBefore(0), 0U);
  EXPECT_EQ(schedule.StepsBefore(15), 12U);
  EXPECT_EQ(schedule.StepsBefore(24), 18U);
}

TEST(Schedule, CountsTheSamplesThatWereTrained) {
  for (const LastBatch last_batch : {LastBatch::kKeep, LastBatch::kDrop}) {
    DataSpec spec = Digits();
    spec.last_batch = last_batch;
    const Schedule schedule = MakeOrDie(spec);
    std::uint64_t samples = 0;
    for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
      EXPECT_EQ(schedule.SamplesBefore(tick), samples) << tick;
      const TickPlan plan = schedule.At(tick);
      if (plan.kind == TickKind::kTrain) samples += plan.samples;
    }
    EXPECT_EQ(schedule.SamplesBefore(schedule.total_ticks()), samples);
  }
}

TEST(Schedule, WithoutTestSamplesThereIsNoEvaluation) {
  DataSpec spec = Digits();
  spec.test_samples = 0;
  const Schedule schedule = MakeOrDie(spec);
  EXPECT_EQ(schedule.total_ticks(), schedule.total_steps());
  EXPECT_TRUE(schedule.At(5).last_of_epoch);
  EXPECT_TRUE(schedule.At(5).last_of_kind);
}

// All interesting remainders of N mod B, and data sets smaller than a batch or than V.
TEST(Schedule, UsesEachSampleOncePerEpoch) {
  constexpr int kShards = 8;
  constexpr std::uint64_t kBatch = 32;
  for (const std::uint64_t full_batches : {0U, 1U, 3U}) {
    for (const std::uint64_t tail : {0U, 1U, 7U, 8U, 9U, 31U}) {
      const std::uint64_t samples = full_batches * kBatch + tail;
      if (samples == 0) continue;
      const Schedule schedule = MakeOrDie({.train_samples = samples,
                                           .test_samples = samples,
                                           .epochs = 2,
                                           .global_batch_size = kBatch,
                                           .logical_shards = kShards});
      std::map<std::pair<std::uint64_t, TickKind>, std::vector<std::uint64_t>> seen;
      for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
        const TickPlan plan = schedule.At(tick);
        std::size_t least = kBatch;
        std::size_t most = 0;
        std::size_t sum = 0;
        for (int shard = 0; shard < kShards; ++shard) {
          const ShardTask task = schedule.TaskOf(tick, shard);
          EXPECT_EQ(task.kind, plan.kind);
          EXPECT_EQ(task.epoch, plan.epoch);
          EXPECT_EQ(task.step, plan.step);
          EXPECT_EQ(task.shard, shard);
          least = std::min(least, task.samples.size());
          most = std::max(most, task.samples.size());
          sum += task.samples.size();
          auto& all = seen[{plan.epoch, plan.kind}];
          all.insert(all.end(), task.samples.begin(), task.samples.end());
        }
        EXPECT_EQ(sum, plan.samples);
        EXPECT_LE(most - least, 1U);
        EXPECT_FALSE(schedule.TaskOf(tick, 0).samples.empty()) << "shard 0 writes the buffers";
      }
      EXPECT_EQ(seen.size(), 4U);
      std::vector<std::uint64_t> in_order(samples);
      std::iota(in_order.begin(), in_order.end(), 0);
      for (auto& [what, all] : seen) {
        if (what.second == TickKind::kEvaluate) {
          EXPECT_EQ(all, in_order);
        }
        std::ranges::sort(all);
        EXPECT_EQ(all, in_order) << samples << " samples, epoch " << what.first;
      }
    }
  }
}

const BatchSegments kSegments = {
    {.epoch = 1, .doublings = 1}, {.epoch = 3, .doublings = 2}, {.epoch = 4, .doublings = 1}};

// All that has random access, against a walk through the ticks.
TEST(Schedule, SegmentsChangeTheBatchFromAnEpochOn) {
  for (const LastBatch last_batch : {LastBatch::kKeep, LastBatch::kDrop}) {
    DataSpec spec = Digits();
    spec.epochs = 6;
    spec.max_doublings = 2;
    spec.last_batch = last_batch;
    const auto made = Schedule::Make(spec, kSegments);
    ASSERT_TRUE(made) << made.error();
    const Schedule& schedule = *made;
    const int doublings[] = {0, 1, 1, 2, 1, 1};
    Tick tick = 0;
    std::uint64_t step = 0;
    std::uint64_t trained = 0;
    for (std::uint64_t epoch = 0; epoch < spec.epochs; ++epoch) {
      EXPECT_EQ(schedule.TicksBefore(epoch), tick);
      const std::uint64_t batch = 256U << doublings[epoch];
      std::vector<std::uint64_t> seen;
      for (std::uint64_t first = 0; first < spec.train_samples; first += batch) {
        if (last_batch == LastBatch::kDrop && first + batch > spec.train_samples) break;
        EXPECT_EQ(schedule.StepsBefore(tick), step);
        EXPECT_EQ(schedule.SamplesBefore(tick), trained);
        EXPECT_EQ(schedule.ShardsAt(tick), 32 << doublings[epoch]);
        const TickPlan plan = schedule.At(tick);
        EXPECT_EQ(plan.epoch, epoch);
        EXPECT_EQ(plan.step, step);
        EXPECT_EQ(plan.first_sample, first);
        EXPECT_EQ(plan.doublings, doublings[epoch]);
        EXPECT_EQ(plan.schedule_step, epoch * schedule.steps_per_epoch() + first / 256);
        EXPECT_EQ(plan.samples, std::min(batch, spec.train_samples - first));
        for (int shard = 0; shard < schedule.ShardsAt(tick); ++shard) {
          const ShardTask task = schedule.TaskOf(tick, shard);
          EXPECT_LE(task.samples.size(), 8U) << "shards do not grow";
          seen.insert(seen.end(), task.samples.begin(), task.samples.end());
        }
        trained += plan.samples;
        ++step;
        ++tick;
      }
      std::ranges::sort(seen);
      EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
      if (last_batch == LastBatch::kKeep) {
        EXPECT_EQ(seen.size(), spec.train_samples) << "each sample, once";
      }
      for (std::uint64_t first = 0; first < spec.test_samples; first += batch, ++tick) {
        EXPECT_EQ(schedule.At(tick).kind, TickKind::kEvaluate);
        EXPECT_EQ(schedule.At(tick).first_sample, first);
      }
      EXPECT_TRUE(schedule.At(tick - 1).last_of_epoch);
    }
    EXPECT_EQ(schedule.total_ticks(), tick);
    EXPECT_EQ(schedule.total_steps(), step);
    EXPECT_EQ(schedule.SamplesBefore(tick), trained);
  }
}

TEST(Schedule, ASegmentDoesNotChangeWhatIsBeforeIt) {
  DataSpec spec = Digits();
  spec.epochs = 6;
  spec.max_doublings = 2;
  const Schedule all = *Schedule::Make(spec, kSegments);
  for (std::size_t count = 0; count < kSegments.size(); ++count) {
    const BatchSegments first(kSegments.begin(),
                              kSegments.begin() + static_cast<std::ptrdiff_t>(count));
    const Schedule some = *all.With(first);
    for (Tick tick = 0; tick < all.TicksBefore(kSegments[count].epoch); ++tick) {
      EXPECT_EQ(some.At(tick), all.At(tick));
    }
  }
}

TEST(Schedule, DropLeavesOutTheShortBatchOnly) {
  DataSpec spec = Digits();
  spec.last_batch = LastBatch::kDrop;
  const Schedule schedule = MakeOrDie(spec);
  EXPECT_EQ(schedule.steps_per_epoch(), 5U);
  EXPECT_EQ(schedule.TicksBefore(1), 7U) << "evaluation sees every sample";
  for (Tick tick = 0; tick < 5; ++tick) EXPECT_EQ(schedule.At(tick).samples, 256U);
  EXPECT_TRUE(schedule.At(4).last_of_kind);
}

TEST(Schedule, DataThatAreReadFromFrontToBackComeAsTheyLie) {
  DataSpec spec = Digits();
  spec.order = DataOrder::kAsItLies;
  const Schedule schedule = MakeOrDie(spec);
  for (const std::uint64_t epoch : {0U, 1U}) {
    std::uint64_t next = 0;
    for (Tick step = 0; step < schedule.steps_per_epoch(); ++step) {
      for (int shard = 0; shard < spec.logical_shards; ++shard) {
        const ShardTask task = schedule.TaskOf(epoch * schedule.TicksBefore(1) + step, shard);
        for (const std::uint64_t sample : task.samples) EXPECT_EQ(sample, next++);
      }
    }
    EXPECT_EQ(next, spec.train_samples);
  }
  EXPECT_NE(schedule.TaskOf(0, 5).seed, schedule.TaskOf(schedule.TicksBefore(1), 5).seed);
}

TEST(Schedule, OrderAndSeedsFollowFromTheJobsSeed) {
  const Schedule schedule = MakeOrDie(Digits());
  EXPECT_EQ(schedule.TaskOf(3, 5).samples, MakeOrDie(Digits()).TaskOf(3, 5).samples);
  EXPECT_NE(schedule.TaskOf(3, 5).samples, schedule.TaskOf(11, 5).samples) << "the epochs differ";
  DataSpec other = Digits();
  other.seed = 8;
  EXPECT_NE(schedule.TaskOf(3, 5).samples, MakeOrDie(other).TaskOf(3, 5).samples);
  EXPECT_NE(schedule.TaskOf(3, 5).seed, MakeOrDie(other).TaskOf(3, 5).seed);

  std::vector<std::uint64_t> seeds;
  for (Tick tick = 0; tick < schedule.total_ticks(); ++tick)
    for (int shard = 0; shard < 32; ++shard) seeds.push_back(schedule.TaskOf(tick, shard).seed);
  std::ranges::sort(seeds);
  EXPECT_EQ(std::ranges::adjacent_find(seeds), seeds.end());
}

// With another order, resumed jobs would use samples twice: it may change only together with the
// format of checkpoints.
TEST(Schedule, OrderIsTheOneOfEarlierReleases) {
  const Schedule schedule = MakeOrDie(Digits());
  EXPECT_EQ(schedule.TaskOf(0, 0).samples,
            (std::vector<std::uint64_t>{6, 1280, 387, 1251, 1118, 872, 629, 1098}));
  EXPECT_EQ(schedule.TaskOf(0, 0).seed, 10153886587700257410U);
}

}  // namespace
}  // namespace pliant
