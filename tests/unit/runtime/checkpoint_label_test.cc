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

// Two steps an epoch, two ticks an evaluation.
TEST(PositionIn, IsBehindTheSameStepsWhateverIsEvaluated) {
  const auto schedule = [](std::uint64_t max_steps, std::uint64_t evaluate_every) {
    DataSpec spec = kData;
    spec.epochs = 0;
    spec.max_steps = max_steps;
    spec.evaluate_every = evaluate_every;
    return *Schedule::Make(spec);
  };
  const struct {
    const char* name;
    Schedule schedule;
    TrainingPosition from;
    Tick want;
  } kCases[] = {
      {"at the beginning", schedule(9, 3), {.step = 0, .tick = 0, .evaluate_every = 2}, 0},
      {"the same, before an evaluation",
       schedule(9, 3),
       {.step = 3, .tick = 3, .evaluate_every = 3},
       3},
      {"the same, after it", schedule(9, 3), {.step = 3, .tick = 5, .evaluate_every = 3}, 5},
      {"the same, at the end", schedule(4, 3), {.step = 4, .tick = 8, .evaluate_every = 3}, 8},
      {"more steps, after the last evaluation of fewer",
       schedule(9, 3),
       {.step = 4, .tick = 8, .evaluate_every = 3},
       6},
      {"more steps, and the same evaluation",
       schedule(9, 3),
       {.step = 3, .tick = 5, .evaluate_every = 3},
       5},
      {"evaluated more often", schedule(9, 1), {.step = 4, .tick = 6, .evaluate_every = 3}, 10},
      {"evaluated more often, after an evaluation",
       schedule(9, 1),
       {.step = 3, .tick = 5, .evaluate_every = 3},
       9},
      {"evaluated less often", schedule(9, 3), {.step = 4, .tick = 12, .evaluate_every = 1}, 6},
      {"evaluated by epochs before",
       schedule(9, 3),
       {.step = 4, .tick = 6, .evaluate_every = 0},
       6},
      {"evaluated by epochs before, after both",
       schedule(9, 4),
       {.step = 4, .tick = 8, .evaluate_every = 0},
       6},
      {"evaluated by epochs now", schedule(9, 0), {.step = 4, .tick = 6, .evaluate_every = 3}, 6},
      {"unchanged, by epochs", schedule(9, 0), {.step = 4, .tick = 5, .evaluate_every = 0}, 5},
      {"no tick of these samples", schedule(9, 3), {.step = 4, .tick = 7, .evaluate_every = 3}, 7},
      {"too few evaluations", schedule(9, 3), {.step = 4, .tick = 4, .evaluate_every = 3}, 4},
      {"too many evaluations", schedule(9, 3), {.step = 4, .tick = 10, .evaluate_every = 3}, 10},
      {"beyond the end", schedule(9, 3), {.step = 10, .tick = 16, .evaluate_every = 3}, 16},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    TrainingPosition want = test.from;
    want.tick = test.want;
    EXPECT_EQ(PositionIn(test.schedule, test.from), want);
  }
}

}  // namespace
}  // namespace pliant
