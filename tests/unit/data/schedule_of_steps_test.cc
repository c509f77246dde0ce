// Trainings that are limited by steps, and evaluated by steps.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/data/schedule.h"

namespace pliant {
namespace {

using ::testing::HasSubstr;

// 6 steps an epoch, and 2 ticks an evaluation.
DataSpec Digits(std::uint64_t epochs, std::uint64_t max_steps, std::uint64_t evaluate_every = 0) {
  return {.train_samples = 1437,
          .test_samples = 360,
          .epochs = epochs,
          .global_batch_size = 256,
          .logical_shards = 32,
          .seed = 7,
          .max_steps = max_steps,
          .evaluate_every = evaluate_every};
}

// The steps after which there is an evaluation.
std::vector<std::uint64_t> EvaluatedAfter(const Schedule& schedule) {
  std::vector<std::uint64_t> steps;
  for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
    const TickPlan plan = schedule.At(tick);
    if (plan.kind == TickKind::kEvaluate && plan.last_of_kind) steps.push_back(plan.step);
  }
  return steps;
}

TEST(ScheduleOfSteps, EndsAndEvaluates) {
  using Steps = std::vector<std::uint64_t>;
  const struct {
    const char* name;
    DataSpec spec;
    std::uint64_t steps;
    std::uint64_t epochs;
    Tick ticks;
    Steps evaluated;
  } kCases[] = {
      {"epochs", Digits(2, 0), 12, 2, 16, {6, 12}},
      {"steps within an epoch", Digits(0, 8), 8, 2, 10, {6}},
      {"steps within the first epoch", Digits(0, 4), 4, 1, 4, {}},
      {"steps that end an epoch", Digits(0, 12), 12, 2, 16, {6, 12}},
      {"one step", Digits(0, 1), 1, 1, 1, {}},
      {"epochs before the steps", Digits(2, 100), 12, 2, 16, {6, 12}},
      {"steps before the epochs", Digits(9, 7), 7, 2, 9, {6}},
      {"evaluations that divide", Digits(0, 8, 4), 8, 2, 12, {4, 8}},
      {"evaluations that do not", Digits(0, 10, 4), 10, 2, 16, {4, 8, 10}},
      {"an evaluation after each step", Digits(0, 3, 1), 3, 1, 9, {1, 2, 3}},
      {"evaluations of epochs, by steps", Digits(2, 0, 6), 12, 2, 16, {6, 12}},
      {"evaluations of epochs", Digits(2, 0, 5), 12, 2, 18, {5, 10, 12}},
      {"evaluations after more steps than there are", Digits(1, 0, UINT64_MAX), 6, 1, 8, {6}},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    const auto schedule = Schedule::Make(test.spec);
    ASSERT_TRUE(schedule) << schedule.error();
    EXPECT_EQ(schedule->total_steps(), test.steps);
    EXPECT_EQ(schedule->epochs(), test.epochs);
    EXPECT_EQ(schedule->total_ticks(), test.ticks);
    EXPECT_EQ(EvaluatedAfter(*schedule), test.evaluated);
  }
}

TEST(ScheduleOfSteps, RefusesInWords) {
  const auto with = [](DataSpec spec, auto change) {
    change(spec);
    return spec;
  };
  const struct {
    const char* message;
    DataSpec spec;
  } kCases[] = {
      {"epochs: there must be at least one, or a maximum of steps (maxSteps)", Digits(0, 0)},
      {"maxSteps: 18446744073709551615 is too large: use at most", Digits(1, UINT64_MAX)},
      {"evaluateEvery: 4 steps, but there are no test samples",
       with(Digits(1, 0, 4), [](DataSpec& spec) { spec.test_samples = 0; })},
      {"evaluateEvery: 4 steps, but a training whose batch grows",
       with(Digits(1, 0, 4), [](DataSpec& spec) { spec.max_doublings = 1; })},
      {"epochs: 288230376151711744 is too large for evaluations after every 4 steps",
       Digits(std::uint64_t{1} << 58, 0, 4)},
  };
  for (const auto& test : kCases) {
    const auto schedule = Schedule::Make(test.spec);
    ASSERT_FALSE(schedule) << test.message;
    EXPECT_EQ(schedule.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(schedule.error().message, HasSubstr(test.message));
  }
}

// A walk through a training, and what it would do next.
struct Walk {
  const DataSpec& spec;
  std::uint64_t steps_per_epoch;
  std::uint64_t step = 0;
  std::uint64_t trained = 0;
  std::uint64_t evaluated = 0;  // samples of the running evaluation

  bool ended() const {
    const bool last_epoch = spec.epochs != 0 && step == spec.epochs * steps_per_epoch;
    return last_epoch || (spec.max_steps != 0 && step == spec.max_steps);
  }
  // The step before was the last one before an evaluation.
  bool evaluates() const {
    if (step == 0 || spec.test_samples == 0) return false;
    if (spec.evaluate_every == 0) return step % steps_per_epoch == 0;
    return step % spec.evaluate_every == 0 || ended();
  }
};

// All that has random access, against a walk through the ticks.
void CompareToAWalk(const DataSpec& spec) {
  const auto made = Schedule::Make(spec);
  ASSERT_TRUE(made) << made.error();
  const Schedule& schedule = *made;
  const std::uint64_t batch = spec.global_batch_size;
  Walk walk{.spec = spec,
            .steps_per_epoch = StepsPerEpoch(spec.train_samples, batch, spec.last_batch)};
  bool evaluates = false;
  for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
    SCOPED_TRACE(tick);
    const TickPlan plan = schedule.At(tick);
    EXPECT_EQ(schedule.StepsBefore(tick), walk.step);
    EXPECT_EQ(schedule.SamplesBefore(tick), walk.trained);
    EXPECT_EQ(plan.step, walk.step);
    if (evaluates) {
      ASSERT_EQ(plan.kind, TickKind::kEvaluate);
      EXPECT_EQ(schedule.TickAfter(plan.step), tick - walk.evaluated / batch);
      EXPECT_EQ(plan.epoch, (walk.step - 1) / walk.steps_per_epoch);
      EXPECT_EQ(plan.first_sample, walk.evaluated);
      EXPECT_EQ(plan.samples, std::min(batch, spec.test_samples - walk.evaluated));
      walk.evaluated += plan.samples;
      EXPECT_EQ(plan.last_of_kind, walk.evaluated == spec.test_samples);
      evaluates = !plan.last_of_kind;
      EXPECT_EQ(plan.last_of_epoch, !evaluates && walk.step % walk.steps_per_epoch == 0);
    } else {
      ASSERT_EQ(plan.kind, TickKind::kTrain);
      ASSERT_FALSE(walk.ended());
      EXPECT_EQ(schedule.TickOfStep(plan.step), tick);
      const std::uint64_t in_epoch = walk.step % walk.steps_per_epoch;
      EXPECT_EQ(plan.epoch, walk.step / walk.steps_per_epoch);
      EXPECT_EQ(plan.first_sample, in_epoch * batch);
      EXPECT_EQ(plan.samples, std::min(batch, spec.train_samples - in_epoch * batch));
      EXPECT_EQ(plan.last_of_kind, in_epoch + 1 == walk.steps_per_epoch);
      EXPECT_EQ(schedule.TicksBefore(plan.epoch) == tick, in_epoch == 0);
      ++walk.step;
      walk.trained += plan.samples;
      walk.evaluated = 0;
      evaluates = walk.evaluates();
      EXPECT_EQ(plan.last_of_epoch, plan.last_of_kind && !evaluates);
      EXPECT_EQ(schedule.PausesAfter(tick), evaluates || walk.ended());
    }
  }
  EXPECT_FALSE(evaluates);
  EXPECT_TRUE(walk.ended());
  EXPECT_EQ(schedule.total_steps(), walk.step);
  EXPECT_EQ(schedule.StepsBefore(schedule.total_ticks()), walk.step);
  EXPECT_EQ(schedule.SamplesBefore(schedule.total_ticks()), walk.trained);
  EXPECT_EQ(schedule.TicksBefore(schedule.epochs()), schedule.total_ticks());
  EXPECT_EQ(schedule.TicksBefore(UINT64_MAX), schedule.total_ticks());
}

TEST(ScheduleOfSteps, RandomAccessEqualsAWalk) {
  for (const LastBatch last_batch : {LastBatch::kKeep, LastBatch::kDrop}) {
    for (const std::uint64_t test_samples : {0U, 5U, 8U, 17U}) {
      for (const std::uint64_t epochs : {0U, 1U, 3U}) {
        for (const std::uint64_t max_steps : {0U, 1U, 2U, 3U, 4U, 7U, 12U, 13U}) {
          for (const std::uint64_t every : {0U, 1U, 2U, 3U, 5U, 99U}) {
            if (epochs == 0 && max_steps == 0) continue;
            if (every != 0 && test_samples == 0) continue;
            SCOPED_TRACE(testing::Message()
                         << (last_batch == LastBatch::kDrop ? "drop, " : "keep, ") << test_samples
                         << " test samples, " << epochs << " epochs, " << max_steps
                         << " steps, evaluated every " << every);
            CompareToAWalk({.train_samples = 27,
                            .test_samples = test_samples,
                            .epochs = epochs,
                            .global_batch_size = 8,
                            .logical_shards = 4,
                            .last_batch = last_batch,
                            .max_steps = max_steps,
                            .evaluate_every = every});
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// A checkpoint continues with more steps.
TEST(ScheduleOfSteps, MoreStepsChangeNothingBeforeThem) {
  for (const std::uint64_t every : {0U, 4U}) {
    const Schedule most = *Schedule::Make(Digits(0, 40, every));
    for (std::uint64_t steps = 1; steps < 40; ++steps) {
      const Schedule some = *Schedule::Make(Digits(0, steps, every));
      // The last one ends an epoch unless an evaluation follows, as at the end.
      for (Tick tick = 0; tick + 1 < some.TickAfter(steps); ++tick) {
        ASSERT_EQ(some.At(tick), most.At(tick)) << steps << " steps, tick " << tick;
      }
    }
  }
}

// Each step of a larger batch counts as one, so there are more epochs.
TEST(ScheduleOfSteps, ABatchThatGrowsNeedsMoreEpochs) {
  DataSpec spec = Digits(0, 10);
  spec.max_doublings = 1;
  EXPECT_EQ(Schedule::Make(spec)->epochs(), 2U);
  const auto grown = Schedule::Make(spec, {{.epoch = 1, .doublings = 1}});
  ASSERT_TRUE(grown) << grown.error();
  EXPECT_EQ(grown->total_steps(), 10U);  // 6 and 3 and 1
  EXPECT_EQ(grown->epochs(), 3U);
  EXPECT_EQ(grown->At(grown->total_ticks() - 1).epoch, 2U);

  EXPECT_TRUE(Schedule::Make(Digits(0, 7), {})) << "an epoch of one step";
  const auto past = Schedule::Make(spec, {{.epoch = 2, .doublings = 1}});
  ASSERT_FALSE(past) << "the steps end within epoch 1";
  EXPECT_THAT(past.error().message, HasSubstr("batches: epoch 2 is not one that follows"));
  EXPECT_FALSE(Schedule::Make(spec, {{.epoch = UINT64_MAX, .doublings = 1}}));
}

}  // namespace
}  // namespace pliant
