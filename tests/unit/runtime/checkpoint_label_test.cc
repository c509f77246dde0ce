#include "trainer/runtime/checkpoint_label.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace pliant {
namespace {

// In each epoch, ticks 0 and 1 are steps, 2 and 3 the evaluation.
const DataSpec kData{.train_samples = 32,
                     .test_samples = 32,
                     .epochs = 2,
                     .global_batch_size = 16,
                     .logical_shards = 4,
                     .seed = 5};

const NoiseWindow kNoise{.trace = 3, .square = 0.5, .steps = 1};

TEST(LabelOf, GoesBackToTheBeginningOfAnEvaluation) {
  const Schedule schedule = *Schedule::Make(kData);
  ASSERT_EQ(schedule.total_ticks(), 8U);
  const struct {
    const char* name;
    Tick applied;
    TrainingPosition want;
  } kCases[] = {
      {"nothing is done", 0, {.step = 0, .tick = 0, .epoch = 0}},
      {"between two steps", 1, {.step = 1, .tick = 1, .epoch = 0}},
      {"before an evaluation", 2, {.step = 2, .tick = 2, .epoch = 0}},
      {"within it", 3, {.step = 2, .tick = 2, .epoch = 0}},
      {"after it", 4, {.step = 2, .tick = 4, .epoch = 1}},
      {"within the last one", 7, {.step = 4, .tick = 6, .epoch = 1}},
      {"at the end", 8, {.step = 4, .tick = 8, .epoch = 2}},
  };
  const BaseModel kBase{.sha256 = "0a1b", .name = "gpt2"};
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    const CheckpointLabel label =
        LabelOf(schedule, {.has_state = true, .applied_ticks = test.applied, .noise = kNoise},
                {3, 1}, "toy", kBase);
    EXPECT_EQ(label.position.step, test.want.step);
    EXPECT_EQ(label.position.tick, test.want.tick);
    EXPECT_EQ(label.position.epoch, test.want.epoch);
    EXPECT_EQ(label.position.membership, (MembershipId{3, 1}));
    EXPECT_EQ(label.position.noise, kNoise);
    EXPECT_EQ(label.job, JobOf(kData, kBase));
    EXPECT_EQ(label.framework, "toy");
  }
}

}  // namespace
}  // namespace pliant
