#include "trainer/data/batch_rule.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using ::testing::HasSubstr;

DataSpec SpecOf(std::uint64_t batch, int max_doublings = 3) {
  return {.train_samples = 10'000,
          .epochs = 10,
          .global_batch_size = batch,
          .logical_shards = 8,
          .max_doublings = max_doublings};
}

NoiseWindow ScaleOf(double scale, double steps = 50) {
  return {.trace = scale * steps, .square = steps, .steps = steps};
}

TEST(NextDoublings, FollowTheNoiseScale) {
  const NoiseWindow hidden{.trace = 100, .square = -1, .steps = 50};
  NoiseWindow long_hidden = hidden;
  long_hidden.steps = 150;
  const struct {
    const char* name;
    int now;
    NoiseWindow noise;
    int want;
  } kCases[] = {
      {"nothing is known", 1, {}, 1},
      {"too few steps were measured", 1, ScaleOf(1e6, 5), 1},
      {"twice the batch is half of the scale", 0, ScaleOf(256), 1},
      {"it is more", 0, ScaleOf(255), 0},
      {"far above, one doubling at a time", 1, ScaleOf(1e6), 2},
      {"not more than allowed", 3, ScaleOf(1e6), 3},
      {"the batch is the scale", 1, ScaleOf(128), 1},
      {"the batch is more", 1, ScaleOf(127), 0},
      {"it is not halved below the job's", 0, ScaleOf(1), 0},
      {"a short window without a scale says nothing", 1, hidden, 1},
      {"a long one says that it is large", 1, long_hidden, 2},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(NextDoublings(SpecOf(64), test.now, test.noise), test.want) << test.name;
  }
}

TEST(Append, TakesOneDoublingOfADecision) {
  const DataSpec spec = SpecOf(64, /*max_doublings=*/2);
  BatchSegments segments;
  Append(segments, spec, 1, 0);
  EXPECT_EQ(segments, BatchSegments{}) << "nothing changes";
  Append(segments, spec, 2, 1000);
  Append(segments, spec, 3, -1000);
  EXPECT_EQ(segments, (BatchSegments{{2, 1}, {3, 0}}));
  Append(segments, spec, 4, -1);
  EXPECT_EQ(segments.size(), 2U);
  Append(segments, spec, 5, 1);
  Append(segments, spec, 6, 2);
  Append(segments, spec, 7, 3);
  EXPECT_EQ(segments, (BatchSegments{{2, 1}, {3, 0}, {5, 1}, {6, 2}})) << "up to the maximum";
  EXPECT_TRUE(Schedule::Make(spec, segments));
}

TEST(Append, EndsWithAsManySegmentsAsAScheduleMayHave) {
  DataSpec spec = SpecOf(64, /*max_doublings=*/1);
  spec.epochs = 5000;
  BatchSegments segments;
  for (std::uint64_t epoch = 1; epoch < spec.epochs; ++epoch)
    Append(segments, spec, epoch, static_cast<int>(epoch % 2));
  EXPECT_EQ(segments.size(), kMaxBatchSegments);
  EXPECT_TRUE(Schedule::Make(spec, segments));
  segments.push_back({.epoch = 4999, .doublings = 1});
  EXPECT_FALSE(Schedule::Make(spec, segments)) << "nor does one read more";
}

TEST(MaxDoublings, KeepAllLimits) {
  DataSpec spec = SpecOf(64);
  EXPECT_EQ(MaxDoublings(spec, 128), 1);
  EXPECT_EQ(MaxDoublings(spec, 600), 3);
  spec.train_samples = 300;
  EXPECT_EQ(MaxDoublings(spec, 1 << 20), 2);
  spec = SpecOf(1 << 14);
  spec.train_samples = std::uint64_t{1} << 40;
  spec.logical_shards = 1 << 14;
  EXPECT_EQ(MaxDoublings(spec, std::uint64_t{1} << 40), 2);
  spec.global_batch_size = spec.logical_shards = 2;
  spec.max_doublings = *MaxDoublings(spec, std::uint64_t{1} << 40);
  EXPECT_EQ(spec.max_doublings, 15);
  EXPECT_TRUE(Schedule::Make(spec));
}

TEST(MaxDoublings, SayWhyABatchCannotGrow) {
  DataSpec few = SpecOf(64);
  few.train_samples = 100;
  DataSpec many = SpecOf(1 << 16);
  many.logical_shards = 1 << 16;
  many.train_samples = 1 << 20;
  DataSpec one = SpecOf(64);
  one.logical_shards = 1;
  const struct {
    DataSpec spec;
    std::uint64_t most;
    const char* message;
  } kCases[] = {
      {SpecOf(64), 127, "maxBatchSize: 127 is less than twice globalBatchSize (64)"},
      {few, 1000, "globalBatchSize: twice 64 is more than the 100 training samples"},
      {one, 1000, "logicalShards: the noise scale is measured between shards, so with 1"},
      {many, 1 << 20, "logicalShards: a doubled batch has twice 65536 shards"},
  };
  for (const auto& test : kCases) {
    const Result<int> doublings = MaxDoublings(test.spec, test.most);
    ASSERT_FALSE(doublings) << test.message;
    EXPECT_EQ(doublings.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(doublings.error().message, HasSubstr(test.message));
  }
}

}  // namespace
}  // namespace pliant
