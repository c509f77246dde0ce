#include "trainer/binding/abi_structs.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(AbiStructs, ReadsTheKnownPartOfALargerCallersStruct) {
  struct Larger {
    pliant_training known;
    std::array<char, 8> newer;
  };
  Larger larger = {.known = {.struct_size = sizeof(Larger), .train_samples = 5}, .newer = {}};
  const auto read = ReadStruct(&larger.known, "training");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->train_samples, 5);
  EXPECT_FALSE(ReadStruct<pliant_training>(nullptr, "training"));
  larger.known.struct_size = sizeof(std::size_t) - 1;
  EXPECT_THAT(ReadStruct(&larger.known, "training").error().message,
              HasSubstr("training->struct_size is 7"));
}

TEST(AbiStructs, WritesNothingBeyondASmallerCallersStruct) {
  pliant_plan plan{.struct_size = offsetof(pliant_plan, steps_per_epoch), .steps_per_epoch = 77};
  ASSERT_TRUE(
      WriteStruct(pliant_plan{.global_batch_size = 4, .steps_per_epoch = 9}, &plan, "plan"));
  EXPECT_EQ(plan.struct_size, offsetof(pliant_plan, steps_per_epoch));
  EXPECT_EQ(plan.global_batch_size, 4);
  EXPECT_EQ(plan.steps_per_epoch, 77);
}

TEST(AbiStructs, ZeroIsWhatAProgramDoesNotSay) {
  const LearnerSession::Training none = TrainingOf({.train_samples = 8, .epochs = 2, .seed = 7});
  EXPECT_EQ(none.train_samples, 8);
  EXPECT_EQ(none.settings.global_batch_size, std::nullopt);
  EXPECT_EQ(none.settings.logical_shards, std::nullopt);
  EXPECT_EQ(none.settings.seed, std::nullopt);
  EXPECT_EQ(none.settings.order, DataOrder::kShuffled);
  const LearnerSession::Training all = TrainingOf({.global_batch_size = 32,
                                                   .logical_shards = 4,
                                                   .seed = 0,
                                                   .has_seed = 1,
                                                   .drop_last = 1,
                                                   .in_order = 1,
                                                   .wants_evaluation_results = 1,
                                                   .max_steps = 1000,
                                                   .evaluate_every = 50});
  EXPECT_EQ(all.settings.global_batch_size, 32);
  EXPECT_EQ(all.settings.logical_shards, 4);
  EXPECT_EQ(all.settings.seed, 0);
  EXPECT_EQ(all.settings.last_batch, LastBatch::kDrop);
  EXPECT_EQ(all.settings.order, DataOrder::kAsItLies);
  EXPECT_TRUE(all.wants_evaluation_results);
  EXPECT_EQ(all.max_steps, 1000);
  EXPECT_EQ(all.evaluate_every, 50);

  const LearnerSession::Options unsaid = OptionsOf({});
  EXPECT_EQ(unsaid.name, "program");
  EXPECT_EQ(unsaid.framework, "unknown");
  EXPECT_EQ(unsaid.checkpoint_dir, std::nullopt);
  EXPECT_TRUE(unsaid.take_signals);
  EXPECT_FALSE(unsaid.keep_freed_memory);
}

TEST(AbiStructs, ATensorsBytesFollowFromItsShape) {
  std::array<std::byte, 48> data{};
  const std::array<std::int64_t, 2> shape = {2, 3};
  struct Case {
    std::int32_t dtype;
    std::int32_t dimensions;
    DType want;
    std::size_t bytes;
  };
  for (const Case& c : {Case{PLIANT_FLOAT32, 2, DType::kFloat32, 24},
                        {PLIANT_FLOAT64, 2, DType::kFloat64, 48},
                        {PLIANT_FLOAT16, 2, DType::kFloat16, 12},
                        {PLIANT_BFLOAT16, 2, DType::kBFloat16, 12},
                        {PLIANT_INT64, 1, DType::kInt64, 16},
                        {PLIANT_INT32, 1, DType::kInt32, 8},
                        {PLIANT_UINT8, 2, DType::kUInt8, 6},
                        {PLIANT_INT8, 2, DType::kInt8, 6},
                        {PLIANT_INT16, 2, DType::kInt16, 12},
                        {PLIANT_FLOAT8_E4M3, 2, DType::kFloat8E4M3, 6},
                        {PLIANT_FLOAT8_E5M2, 2, DType::kFloat8E5M2, 6},
                        {PLIANT_BOOL, 0, DType::kBool, 1}}) {
    const auto bound = TensorOf({.name = "model.w",
                                 .role = PLIANT_BUFFER,
                                 .dtype = c.dtype,
                                 .dimensions = c.dimensions,
                                 .shape = shape.data(),
                                 .data = data.data()});
    ASSERT_TRUE(bound);
    EXPECT_EQ(bound->role, TensorRole::kBuffer);
    EXPECT_EQ(bound->view.dtype, c.want);
    EXPECT_EQ(bound->view.shape.size(), static_cast<std::size_t>(c.dimensions));
    EXPECT_EQ(bound->view.bytes.data(), data.data());
    EXPECT_EQ(bound->view.bytes.size(), c.bytes);
  }
}

TEST(AbiStructs, AGradientIsOfFloats) {
  const auto format = GradientFormatOf(PLIANT_FLOAT64, PLIANT_CUDA, 0.5);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->dtype, DType::kFloat64);
  EXPECT_TRUE(format->on_device);
  EXPECT_EQ(format->scale, 0.5);
  EXPECT_FALSE(GradientFormatOf(PLIANT_FLOAT32, PLIANT_CPU, 1)->on_device);
  EXPECT_EQ(GradientFormatOf(PLIANT_FLOAT16, PLIANT_CUDA, 1)->dtype, DType::kFloat16);
  EXPECT_EQ(GradientFormatOf(PLIANT_BFLOAT16, PLIANT_CPU, 1)->dtype, DType::kBFloat16);
  EXPECT_THAT(GradientFormatOf(PLIANT_INT64, PLIANT_CPU, 1).error().message,
              HasSubstr("it must be PLIANT_FLOAT32, PLIANT_FLOAT64, PLIANT_FLOAT16"));
  EXPECT_THAT(GradientFormatOf(PLIANT_FLOAT32, 9, 1).error().message, HasSubstr("device is 9"));
}

TEST(AbiStructs, WorkSaysWhatIsToBeDone) {
  ShardTask task;
  task.kind = TickKind::kTrain;
  task.shard = 3;
  task.epoch = 1;
  task.step = 12;
  task.samples = {5, 2};
  task.seed = 99;
  const pliant_work ahead = WorkOf(task);
  EXPECT_EQ(ahead.kind, PLIANT_TRAIN);
  EXPECT_EQ(ahead.shard, 3);
  EXPECT_EQ(ahead.epoch, 1);
  EXPECT_EQ(ahead.step, 12);
  EXPECT_THAT(std::vector(ahead.samples, ahead.samples + ahead.sample_count), ElementsAre(5, 2));
  EXPECT_EQ(ahead.seed, 99);
  EXPECT_EQ(ahead.gradient, nullptr);

  std::array<float, 2> gradient{};
  const pliant_work shard = WorkOf(Work(ShardWork{.task = &task, .gradient = gradient}));
  EXPECT_EQ(shard.shard, 3);
  EXPECT_EQ(shard.gradient, gradient.data());
  EXPECT_EQ(shard.gradient_elements, 2);
  EXPECT_EQ(shard.travels_early, 0);
  EXPECT_EQ(shard.last, 0);
  task.kind = TickKind::kEvaluate;
  EXPECT_EQ(WorkOf(Work(ShardWork{.task = &task})).kind, PLIANT_EVALUATE);

  const pliant_work commit = WorkOf(Work(CommitTask{.epoch = 2,
                                                    .step = 20,
                                                    .schedule_step = 24,
                                                    .doublings = 1,
                                                    .last_of_epoch = true,
                                                    .gradient = gradient,
                                                    .sums = {8, 4, 2}}));
  EXPECT_EQ(commit.kind, PLIANT_COMMIT);
  EXPECT_EQ(commit.step, 20);
  EXPECT_EQ(commit.reduced, gradient.data());
  EXPECT_EQ(commit.gradient_elements, 2);
  EXPECT_EQ(commit.samples_sum, 8);
  EXPECT_EQ(commit.schedule_step, 24);
  EXPECT_EQ(commit.doublings, 1);
  EXPECT_EQ(commit.last, 1);

  const pliant_work evaluated =
      WorkOf(Work(EvaluationTask{.epoch = 2, .step = 21, .sums = {8, 4, 2}}));
  EXPECT_EQ(evaluated.kind, PLIANT_EVALUATED);
  EXPECT_EQ(evaluated.step, 21);
  EXPECT_EQ(evaluated.loss_sum, 4);
  EXPECT_EQ(evaluated.correct_sum, 2);
  EXPECT_EQ(WorkOf(Work(LoadedWork{})).kind, PLIANT_LOADED);
}

TEST(AbiStructs, AnInterruptionIsNoDeparture) {
  const auto reason = [](LeftReason left, bool interrupted) {
    const LearnerSession::Ending ending{
        .reason = left, .interrupted = interrupted, .message = "", .parameters_sha256 = ""};
    return EndOf(ending).reason;
  };
  EXPECT_EQ(reason(LeftReason::kCompleted, false), PLIANT_COMPLETED);
  EXPECT_EQ(reason(LeftReason::kDrained, false), PLIANT_DRAINED);
  EXPECT_EQ(reason(LeftReason::kDrained, true), PLIANT_INTERRUPTED);
  EXPECT_EQ(reason(LeftReason::kFailed, false), PLIANT_LEARNER_FAILED);
}

}  // namespace
}  // namespace pliant
