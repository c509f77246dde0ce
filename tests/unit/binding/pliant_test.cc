// Wrong calls of the C interface return a code and a message, and never end the process.

#include "trainer/binding/pliant.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

using testing::HasSubstr;

class PliantTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("pliant-abi-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    Open();
  }
  // Opens another learner after the one of SetUp.
  void OpenAgain(bool keep_freed_memory = false) {
    pliant_close(learner_);
    Open(keep_freed_memory);
  }
  void Open(bool keep_freed_memory = false) {
    const std::string folder = folder_.string();
    const pliant_options options = {.struct_size = sizeof options,
                                    .name = "test",
                                    .framework = "none 1",
                                    .checkpoint_dir = folder.c_str(),
                                    .keep_freed_memory = keep_freed_memory ? 1 : 0};
    ASSERT_EQ(pliant_open(&options, &learner_), PLIANT_OK) << pliant_last_error();
  }
  // Opens the learner of a job whose coordinator cannot be reached.
  void OpenInJob() {
    const std::filesystem::path volume = folder_ / "volume";
    std::filesystem::create_directories(volume);
    for (const char* name : {"token", "peer-key", "ca.crt"}) {
      std::ofstream(folder_ / name) << "0a1b";
    }
    const std::pair<const char*, std::string> job[] = {
        {"PLIANT_COORDINATOR", "127.0.0.1:1"},
        {"PLIANT_LEARNER", "digits-0"},
        {"PLIANT_JOB_UID", "job-uid"},
        {"PLIANT_POD_IP", "127.0.0.1"},
        {"PLIANT_TOKEN_FILE", (folder_ / "token").string()},
        {"PLIANT_PEER_KEY_FILE", (folder_ / "peer-key").string()},
        {"PLIANT_TLS_DIR", folder_.string()},
        {"PLIANT_TERMINATION_LOG", (folder_ / "termination").string()},
        {"PLIANT_CHECKPOINT_DIR", volume.string()},
    };
    for (const auto& [name, value] : job) setenv(name, value.c_str(), /*replace=*/1);
    Open();
    for (const auto& [name, value] : job) unsetenv(name);
  }
  void TearDown() override {
    pliant_close(learner_);
    std::filesystem::remove_all(folder_);
  }

  pliant_status Describe(pliant_training training) {
    training.struct_size = sizeof training;
    return pliant_describe(learner_, &training);
  }
  pliant_tensor Tensor(const char* name, int32_t role = PLIANT_PARAMETER) {
    return {.struct_size = sizeof(pliant_tensor),
            .name = name,
            .role = role,
            .dtype = PLIANT_FLOAT32,
            .dimensions = 1,
            .device = PLIANT_CPU,
            .shape = &elements_,
            .data = values_.data()};
  }
  pliant_status Register(const pliant_tensor& tensor) {
    return pliant_register(learner_, &tensor, nullptr);
  }
  // Registers a buffer of one number.
  void RegisterMean(float& value) {
    pliant_tensor buffer = Tensor("model.mean", PLIANT_BUFFER);
    buffer.dimensions = 0;
    buffer.data = &value;
    ASSERT_EQ(Register(buffer), PLIANT_OK);
  }
  void Start(uint64_t epochs = 2) {
    ASSERT_EQ(
        Describe(
            {.train_samples = 4, .epochs = epochs, .global_batch_size = 4, .logical_shards = 4}),
        PLIANT_OK);
    ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
    ASSERT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
  }
  pliant_work Next(double seconds = 20) {
    pliant_work work{.struct_size = sizeof work};
    EXPECT_EQ(pliant_next(learner_, seconds, &work), PLIANT_OK) << pliant_last_error();
    return work;
  }

  std::filesystem::path folder_;
  pliant_learner* learner_ = nullptr;
  int64_t elements_ = 3;
  std::array<float, 3> values_{};
};

TEST_F(PliantTest, WrongArgumentsAreNamed) {
  EXPECT_EQ(pliant_open(nullptr, nullptr), PLIANT_INVALID);
  pliant_learner* second = nullptr;
  EXPECT_EQ(pliant_open(nullptr, &second), PLIANT_ORDER);
  EXPECT_THAT(pliant_last_error(), HasSubstr("has a learner already"));
  EXPECT_EQ(pliant_describe(nullptr, nullptr), PLIANT_INVALID);
  EXPECT_EQ(pliant_describe(learner_, nullptr), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("training is NULL"));
  const pliant_training unsized{};
  EXPECT_EQ(pliant_describe(learner_, &unsized), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("struct_size"));

  const pliant_training wrong[] = {
      {.train_samples = 0, .epochs = 1},
      {.train_samples = 10, .epochs = 1, .global_batch_size = 7, .logical_shards = 2},
      {.train_samples = 10, .epochs = 1, .global_batch_size = 8, .logical_shards = 3},
      {.train_samples = 10, .epochs = 1, .global_batch_size = 8, .logical_shards = -8},
      {.train_samples = std::numeric_limits<uint64_t>::max(),
       .epochs = std::numeric_limits<uint64_t>::max()},
      {.train_samples = 10, .epochs = 1, .global_batch_size = std::numeric_limits<uint64_t>::max()},
  };
  for (const pliant_training& training : wrong) {
    EXPECT_EQ(Describe(training), PLIANT_INVALID);
    EXPECT_STRNE(pliant_last_error(), "");
  }
}

// Alone, the program decides where checkpoints go. In a job they go to its volume, where other
// learners read them and where they persist.
TEST_F(PliantTest, AJobsCheckpointsAreOnItsVolume) {
  const auto folder = [&] {
    pliant_job job{.struct_size = sizeof job};
    EXPECT_EQ(pliant_get_job(learner_, &job), PLIANT_OK);
    return std::filesystem::path(job.checkpoint_dir);
  };
  EXPECT_EQ(folder(), folder_ / "local");
  pliant_close(learner_);
  learner_ = nullptr;

  testing::internal::CaptureStderr();
  OpenInJob();
  const std::string logged = testing::internal::GetCapturedStderr();
  ASSERT_NE(learner_, nullptr);
  EXPECT_EQ(folder(), folder_ / "volume" / "job-uid");
  EXPECT_THAT(logged, HasSubstr("the program's checkpoint folder is not used"));
}

TEST_F(PliantTest, WrongTensorsAreNamed) {
  const auto refused = [&](pliant_tensor tensor) {
    EXPECT_EQ(Register(tensor), PLIANT_INVALID);
    return std::string(pliant_last_error());
  };
  pliant_tensor tensor = Tensor("model.w");
  tensor.name = nullptr;
  EXPECT_THAT(refused(tensor), HasSubstr("name is missing"));
  EXPECT_THAT(refused(Tensor("w")), HasSubstr("w: a parameter's name must begin with \"model.\""));
  EXPECT_THAT(refused(Tensor("modelw")), HasSubstr("modelw: a parameter's name"));
  EXPECT_EQ(Register(Tensor("buffers.mask", PLIANT_BUFFER)), PLIANT_OK);
  tensor = Tensor("model.w");
  tensor.role = 9;
  EXPECT_THAT(refused(tensor), HasSubstr("role is 9"));
  tensor = Tensor("model.w");
  tensor.dtype = 0;
  EXPECT_THAT(refused(tensor), HasSubstr("dtype is 0"));
  tensor = Tensor("model.w");
  tensor.data = nullptr;
  EXPECT_THAT(refused(tensor), HasSubstr("model.w: data is NULL"));
  tensor = Tensor("model.w");
  const std::array<int64_t, 3> huge = {int64_t{1} << 40, int64_t{1} << 40, 4};
  tensor.dimensions = 3;
  tensor.shape = huge.data();
  EXPECT_THAT(refused(tensor), HasSubstr("too large"));
  tensor = Tensor("model.w");
  tensor.dimensions = 2000;
  EXPECT_THAT(refused(tensor), HasSubstr("dimensions"));
}

TEST_F(PliantTest, StartChecksTheRegisteredTensors) {
  ASSERT_EQ(Describe({.train_samples = 4, .epochs = 1}), PLIANT_OK);
  EXPECT_EQ(pliant_start(learner_), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("no parameter"));
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  ASSERT_EQ(Register(Tensor("model.w", PLIANT_BUFFER)), PLIANT_OK);
  EXPECT_EQ(pliant_start(learner_), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("two tensors are named model.w"));
}

TEST_F(PliantTest, OutOfOrderIsRefused) {
  pliant_work work{.struct_size = sizeof work};
  EXPECT_EQ(pliant_next(learner_, 0, &work), PLIANT_ORDER);
  EXPECT_EQ(pliant_start(learner_), PLIANT_ORDER);
  pliant_plan plan{.struct_size = sizeof plan};
  EXPECT_EQ(pliant_get_plan(learner_, &plan), PLIANT_ORDER);
  pliant_end end{.struct_size = sizeof end};
  EXPECT_EQ(pliant_get_end(learner_, &end), PLIANT_ORDER);
  EXPECT_EQ(pliant_shard_done(learner_, 1, 1, 1), PLIANT_ORDER);
  EXPECT_EQ(pliant_data_waited(learner_, 1), PLIANT_ORDER);

  Start();
  EXPECT_EQ(pliant_start(learner_), PLIANT_ORDER);
  EXPECT_EQ(Describe({.train_samples = 4, .epochs = 1}), PLIANT_ORDER);
  EXPECT_EQ(Register(Tensor("model.v")), PLIANT_ORDER);
  EXPECT_EQ(Next().kind, PLIANT_TRAIN);
  EXPECT_EQ(pliant_next(learner_, 0, &work), PLIANT_ORDER);
  EXPECT_THAT(pliant_last_error(), HasSubstr("not answered"));
  EXPECT_EQ(pliant_committed(learner_, 1), PLIANT_ORDER);
  EXPECT_EQ(pliant_data_waited(learner_, 0.25), PLIANT_OK);
  EXPECT_EQ(pliant_data_waited(learner_, -1), PLIANT_INVALID);
  EXPECT_EQ(pliant_data_waited(learner_, std::numeric_limits<double>::quiet_NaN()), PLIANT_INVALID);
  EXPECT_EQ(pliant_gradients_ready(learner_, 0, 2), PLIANT_INVALID);
  EXPECT_EQ(pliant_gradients_ready(learner_, -1, 1), PLIANT_INVALID);
  EXPECT_EQ(pliant_put_gradient(learner_, 0, nullptr, PLIANT_FLOAT32, PLIANT_CPU, 1),
            PLIANT_INVALID);
  EXPECT_EQ(pliant_put_gradient(learner_, 0, values_.data(), PLIANT_BOOL, PLIANT_CPU, 1),
            PLIANT_INVALID);
  EXPECT_EQ(pliant_put_gradients(learner_, nullptr, PLIANT_FLOAT32, PLIANT_CPU, 1), PLIANT_INVALID);
  const void* const all = values_.data();
  EXPECT_EQ(pliant_put_gradients(learner_, &all, PLIANT_INT64, PLIANT_CPU, 1), PLIANT_INVALID);
}

// After that it may already have been sent to other learners.
TEST_F(PliantTest, AGradientIsHandedInOnce) {
  Start();
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  ASSERT_EQ(pliant_gradients_ready(learner_, 0, 1), PLIANT_OK);
  EXPECT_EQ(pliant_gradients_ready(learner_, 0, 1), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("parameter 0 was handed in before"));
  EXPECT_EQ(pliant_put_gradient(learner_, 0, values_.data(), PLIANT_FLOAT32, PLIANT_CPU, 1),
            PLIANT_INVALID);
  const void* all = values_.data();
  EXPECT_EQ(pliant_put_gradients(learner_, &all, PLIANT_FLOAT32, PLIANT_CPU, 1), PLIANT_INVALID);
  all = nullptr;
  EXPECT_EQ(pliant_put_gradients(learner_, &all, PLIANT_FLOAT32, PLIANT_CPU, 1), PLIANT_OK)
      << "none of them";
  EXPECT_EQ(pliant_gradients_ready(learner_, 1, 0), PLIANT_OK) << "none of them";
  ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  EXPECT_EQ(pliant_gradients_ready(learner_, 0, 1), PLIANT_OK) << "it belongs to the next shard";
}

TEST_F(PliantTest, AloneThereIsOneShardUnlessMoreAreAskedFor) {
  const auto shards = [&] {
    EXPECT_EQ(Describe({.train_samples = 64, .epochs = 1, .global_batch_size = 64}), PLIANT_OK);
    pliant_plan plan{.struct_size = sizeof plan};
    EXPECT_EQ(pliant_get_plan(learner_, &plan), PLIANT_OK);
    return plan.logical_shards;
  };
  EXPECT_EQ(shards(), 1);
  setenv("PLIANT_MAX_LEARNERS", "2", 1);
  OpenAgain();
  EXPECT_EQ(shards(), 4);
  setenv("PLIANT_LOGICAL_SHARDS", "8", 1);
  OpenAgain();
  EXPECT_EQ(shards(), 8);
  unsetenv("PLIANT_MAX_LEARNERS");
  unsetenv("PLIANT_LOGICAL_SHARDS");
}

TEST_F(PliantTest, ADescriptionReplacesTheOneBefore) {
  const auto shards = [&](int32_t count) {
    EXPECT_EQ(
        Describe(
            {.train_samples = 64, .epochs = 1, .global_batch_size = 64, .logical_shards = count}),
        PLIANT_OK)
        << pliant_last_error();
    pliant_plan plan{.struct_size = sizeof plan};
    EXPECT_EQ(pliant_get_plan(learner_, &plan), PLIANT_OK);
    return plan.logical_shards;
  };
  EXPECT_EQ(shards(4), 4);
  EXPECT_EQ(shards(8), 8);
  pliant_job job{.struct_size = sizeof job};
  EXPECT_EQ(pliant_get_job(learner_, &job), PLIANT_OK);
  EXPECT_EQ(job.logical_shards, 0) << "the job does not set it, whatever the program does";
}

TEST_F(PliantTest, AFolderThatCannotBeWrittenToIsRefusedAtOnce) {
  pliant_close(learner_);
  const pliant_options options = {.struct_size = sizeof options, .checkpoint_dir = "/proc/nope"};
  EXPECT_EQ(pliant_open(&options, &learner_), PLIANT_INVALID);
  EXPECT_THAT(
      pliant_last_error(),
      testing::AllOf(HasSubstr("checkpoints cannot be written to /proc/nope/local: No such"),
                     HasSubstr("PLIANT_CHECKPOINT_DIR")));
  Open();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "local")) << "the trial leaves no files";
}

TEST_F(PliantTest, TrainsAlone) {
  Start();
  pliant_plan plan{.struct_size = sizeof plan};
  ASSERT_EQ(pliant_get_plan(learner_, &plan), PLIANT_OK);
  EXPECT_EQ(plan.total_steps, 2);
  EXPECT_EQ(plan.logical_shards, 4);
  int commits = 0;
  for (;;) {
    const pliant_work work = Next();
    if (work.kind == PLIANT_END) break;
    if (work.kind == PLIANT_TRAIN) {
      ASSERT_EQ(work.sample_count, 1);
      // The next work is known, because no other learner trains.
      pliant_work ahead{.struct_size = sizeof ahead};
      const pliant_status told = pliant_forecast(learner_, 0, &ahead);
      const bool last = work.step == 1 && work.shard == 3;
      ASSERT_EQ(told, last ? PLIANT_NOTHING : PLIANT_OK);
      if (!last) {
        EXPECT_EQ(ahead.shard, (work.shard + 1) % 4);
      }
      const std::array<float, 3> gradient = {1, 2, static_cast<float>(work.shard)};
      // The second shard hands in nothing, which means zeros. The third one hands in everything in
      // one call.
      if (work.shard == 2) {
        const void* const all = gradient.data();
        ASSERT_EQ(pliant_put_gradients(learner_, &all, PLIANT_FLOAT32, PLIANT_CPU, 2), PLIANT_OK);
      } else if (work.shard != 1) {
        ASSERT_EQ(pliant_put_gradient(learner_, 0, gradient.data(), PLIANT_FLOAT32, PLIANT_CPU, 2),
                  PLIANT_OK);
      }
      ASSERT_EQ(pliant_shard_done(learner_, 1, 0.5, 1), PLIANT_OK);
    } else {
      ASSERT_EQ(work.kind, PLIANT_COMMIT);
      ++commits;
      ASSERT_EQ(work.gradient_elements, 3);
      EXPECT_EQ(std::vector(work.reduced, work.reduced + 3), (std::vector<float>{1.5, 3, 2.5}));
      EXPECT_EQ(work.loss_sum, 2);
      EXPECT_EQ(work.samples_sum, 4);
      values_[0] += 1;
      ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
    }
  }
  EXPECT_EQ(commits, 2);
  EXPECT_EQ(Next(0).kind, PLIANT_END) << "and it stays so";
  pliant_end end{.struct_size = sizeof end};
  ASSERT_EQ(pliant_get_end(learner_, &end), PLIANT_OK);
  EXPECT_EQ(end.reason, PLIANT_COMPLETED);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.step, 2);
  EXPECT_EQ(std::string(end.parameters_sha256).size(), 64);
  const char* line = nullptr;
  ASSERT_EQ(pliant_next_metrics(learner_, &line), PLIANT_OK);
  EXPECT_THAT(line, HasSubstr(R"("kind":"train")"));
}

// Four shards of a sample each, with 1, 2, 0 and 5 tokens. The gradient of a token is its shard.
TEST_F(PliantTest, AProgramWeighsByTokens) {
  Start(1);
  const std::array<double, 4> tokens = {1, 2, 0, 5};
  for (pliant_work work = Next(); work.kind != PLIANT_END; work = Next()) {
    if (work.kind == PLIANT_COMMIT) {
      EXPECT_EQ(work.samples_sum, 4);
      EXPECT_EQ(work.weight_sum, 8);
      EXPECT_EQ(work.loss_sum, 16);
      EXPECT_EQ(work.mean_factor, 0.5);
      EXPECT_EQ(work.reduced[0] * static_cast<float>(work.mean_factor), 17.0F / 8);
      ASSERT_EQ(work.sum_count, 2);
      EXPECT_STREQ(work.sum_names[0], "entropy");
      EXPECT_STREQ(work.sum_names[1], "right");
      EXPECT_EQ(work.sum_values[0], 6);
      EXPECT_EQ(work.sum_values[1], 3) << "a shard that lacks it adds zero";
      EXPECT_NE(work.first, 0) << "it trains alone";
      ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
      continue;
    }
    const double weight = tokens.at(static_cast<std::size_t>(work.shard));
    if (weight > 0) {
      const auto gradient = static_cast<float>(weight * work.shard);
      work.gradient[0] = work.gradient[1] = work.gradient[2] = gradient;
      ASSERT_EQ(pliant_gradients_ready(learner_, 0, 1), PLIANT_OK);
    }
    const std::array<const char*, 2> names = {"entropy", "right"};
    const std::array<double, 2> values = {static_cast<double>(work.shard), 3};
    const pliant_sums sums = {.struct_size = sizeof sums,
                              .weighs = 1,
                              .count = work.shard == 3 ? 2 : 1,
                              .weight = weight,
                              .names = names.data(),
                              .values = values.data()};
    ASSERT_EQ(pliant_report_sums(learner_, &sums), PLIANT_OK) << pliant_last_error();
    ASSERT_EQ(pliant_shard_done(learner_, 1, 2 * weight, 0), PLIANT_OK);
  }
  const char* line = nullptr;
  ASSERT_EQ(pliant_next_metrics(learner_, &line), PLIANT_OK);
  EXPECT_THAT(line, testing::AllOf(HasSubstr(R"("loss":2.0)"), HasSubstr(R"("weight":8.0)"),
                                   HasSubstr(R"("sums":{"entropy":6.0,"right":3.0})")));
}

std::string ContentOf(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Each learner loads it itself: it is in no checkpoint, but in the final model.
TEST_F(PliantTest, ATensorAtHomeIsOnlyInTheFinalModel) {
  const std::string hash(64, 'a');
  setenv("PLIANT_CHECKPOINT_EVERY_STEPS", "1", 1);
  OpenAgain();
  unsetenv("PLIANT_CHECKPOINT_EVERY_STEPS");
  ASSERT_EQ(Describe({.train_samples = 4,
                      .epochs = 3,
                      .global_batch_size = 4,
                      .logical_shards = 4,
                      .base = hash.c_str(),
                      .base_name = "gpt2@607a30d"}),
            PLIANT_OK)
      << pliant_last_error();
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  ASSERT_EQ(Register(Tensor("model.frozen", PLIANT_HOME)), PLIANT_OK);
  const char* const tensors[] = {"model.w", "model.frozen"};
  const char* const names[] = {"layer.w", "layer.frozen"};
  const char* const files[] = {"config.json"};
  const char* const texts[] = {"{}"};
  const std::size_t sizes[] = {2};
  pliant_final final = {.struct_size = sizeof final,
                        .stem = "adapter_model",
                        .tensors = tensors,
                        .names = names,
                        .tensor_count = 2,
                        .file_count = 1,
                        .files = files,
                        .file_texts = texts,
                        .file_sizes = sizes};
  ASSERT_EQ(pliant_describe_final(learner_, &final), PLIANT_OK) << pliant_last_error();
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
  for (pliant_work work = Next(); work.kind != PLIANT_END; work = Next()) {
    if (work.kind == PLIANT_COMMIT) {
      ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
    } else {
      ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
    }
  }
  const std::filesystem::path folder = folder_ / "local";
  const std::string model = ContentOf(folder / "final" / "adapter_model.safetensors");
  EXPECT_THAT(model, testing::AllOf(HasSubstr("layer.w"), HasSubstr("layer.frozen")));
  EXPECT_EQ(ContentOf(folder / "final" / "config.json"), "{}");
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("step-")) continue;
    ++checkpoints;
    const std::string kept = ContentOf(entry.path() / "model-00001-of-00001.safetensors");
    EXPECT_THAT(kept, testing::AllOf(HasSubstr("\"w\""), testing::Not(HasSubstr("frozen"))));
    EXPECT_THAT(ContentOf(entry.path() / "manifest.json"),
                testing::AllOf(HasSubstr(hash), HasSubstr("gpt2@607a30d")));
  }
  EXPECT_GT(checkpoints, 0);
}

TEST_F(PliantTest, AWrongBaseOrFinalModelIsNamed) {
  EXPECT_EQ(Describe({.train_samples = 4, .epochs = 1, .base = "gpt2"}), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("base is \"gpt2\": it must be a SHA-256"));
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  const char* const tensors[] = {"model.w", "model.v"};
  const char* const twice[] = {"model.w", "model.w"};
  const char* const names[] = {"w", "v"};
  struct Case {
    pliant_final final;
    const char* said;
  };
  const Case cases[] = {
      {{.tensors = tensors, .names = names, .tensor_count = 2},
       "has model.v, which is no registered"},
      {{.tensors = twice, .names = names, .tensor_count = 2}, "model.w is named twice"},
      {{.tensors = tensors, .tensor_count = 2}, "final->names is NULL"},
      {{.tensor_count = -1}, "is negative"},
      {{.file_count = 1}, "file 0 is NULL"},
      {{.stem = "/etc/model"}, "cannot name the files"},
  };
  for (Case c : cases) {
    c.final.struct_size = sizeof c.final;
    EXPECT_EQ(pliant_describe_final(learner_, &c.final), PLIANT_INVALID) << c.said;
    EXPECT_THAT(pliant_last_error(), HasSubstr(c.said));
  }
}

TEST_F(PliantTest, SumsOfNoWeightHaveAFactorOfZero) {
  Start(1);
  for (pliant_work work = Next(); work.kind != PLIANT_END; work = Next()) {
    if (work.kind == PLIANT_COMMIT) {
      EXPECT_EQ(work.weight_sum, 0);
      EXPECT_EQ(work.mean_factor, 0);
      ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
      continue;
    }
    const pliant_sums sums = {.struct_size = sizeof sums, .weighs = 1};
    ASSERT_EQ(pliant_report_sums(learner_, &sums), PLIANT_OK) << pliant_last_error();
    ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
  }
}

TEST_F(PliantTest, WrongSumsAreNamed) {
  const char* const sorted[] = {"a", "b"};
  const char* const unsorted[] = {"b", "a"};
  const char* const twice[] = {"a", "a"};
  const char* const taken[] = {"loss"};
  const char* const none[] = {nullptr};
  const double values[] = {1, 2};
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    pliant_sums sums;
    const char* said;
  };
  const Case cases[] = {
      {{.weighs = 1, .weight = -1}, "weight is -1: it must be a number ≥ 0"},
      {{.weighs = 1, .weight = kNan}, "weight is nan"},
      {{.count = -1, .names = sorted, .values = values}, "-1 named sums"},
      {{.count = 33, .names = sorted, .values = values}, "33 named sums: at most 32"},
      {{.count = 1, .values = values}, "names is NULL"},
      {{.count = 2, .names = unsorted, .values = values}, "ascending order"},
      {{.count = 2, .names = twice, .values = values}, "ascending order"},
      {{.count = 1, .names = taken, .values = values}, "a sum is named \"loss\""},
      {{.count = 1, .names = none, .values = values}, "a sum is named \"\""},
  };
  pliant_sums sums = {.struct_size = sizeof sums};
  EXPECT_EQ(pliant_report_sums(learner_, &sums), PLIANT_ORDER) << "there is no shard";
  Start();
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  for (Case c : cases) {
    c.sums.struct_size = sizeof c.sums;
    EXPECT_EQ(pliant_report_sums(learner_, &c.sums), PLIANT_INVALID) << c.said;
    EXPECT_THAT(pliant_last_error(), HasSubstr(c.said));
  }
}

TEST_F(PliantTest, SumsWithoutValuesNeedThoseOfADevice) {
  Start();
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  const char* const names[] = {"a"};
  const pliant_sums sums = {.struct_size = sizeof sums, .count = 1, .names = names};
  ASSERT_EQ(pliant_report_sums(learner_, &sums), PLIANT_OK);
  EXPECT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_ORDER);
  EXPECT_THAT(pliant_last_error(), HasSubstr("the values of the named sums are missing"));
}

// Its batch grows by the noise of samples, which says nothing of tokens.
TEST_F(PliantTest, AGrowingBatchRefusesWeights) {
  const std::pair<const char*, const char*> grows[] = {{"PLIANT_BATCH_MODE", "FromState"},
                                                       {"PLIANT_MAX_BATCH_SIZE", "64"}};
  for (const auto& [name, value] : grows) setenv(name, value, 1);
  OpenAgain();
  for (const auto& [name, value] : grows) unsetenv(name);
  ASSERT_EQ(
      Describe({.train_samples = 32, .epochs = 1, .global_batch_size = 16, .logical_shards = 4}),
      PLIANT_OK)
      << pliant_last_error();
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  pliant_sums sums = {.struct_size = sizeof sums, .weighs = 1, .weight = 3};
  EXPECT_EQ(pliant_report_sums(learner_, &sums), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("use the mode Constant"));
  sums.weighs = 0;
  EXPECT_EQ(pliant_report_sums(learner_, &sums), PLIANT_OK);
}

// The effect of torch.set_flush_denormal(True) on the calling thread.
class FlushesDenormals {
 public:
#if defined(__x86_64__)
  FlushesDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushesDenormals() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
#endif
};

// A gradient handed in with one call is added directly; one handed in by parameter is not; one
// written in place is scaled by the program.
TEST_F(PliantTest, EveryWayToHandInAGradientGivesTheSameBits) {
  enum class By { kAll, kOne, kPlace, kAllAsDouble };
  constexpr std::size_t kElements = 6;
  std::array<float, kElements> weights{};
  elements_ = kElements;
  std::vector<std::vector<std::uint32_t>> reduced;  // as bits
  const auto train = [&](By by) {
    OpenAgain();
    const pliant_training training = {
        .train_samples = 16, .epochs = 1, .global_batch_size = 16, .logical_shards = 16};
    ASSERT_EQ(Describe(training), PLIANT_OK);
    pliant_tensor tensor = Tensor("model.w");
    tensor.data = weights.data();
    ASSERT_EQ(Register(tensor), PLIANT_OK);
    ASSERT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
    for (pliant_work work = Next(); work.kind != PLIANT_END; work = Next()) {
      if (work.kind == PLIANT_COMMIT) {
        auto& bits = reduced.emplace_back();
        for (std::size_t i = 0; i < work.gradient_elements; ++i) {
          bits.push_back(std::bit_cast<std::uint32_t>(work.reduced[i]));
        }
        ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
        continue;
      }
      constexpr float kScale = 3;
      const float shard = static_cast<float>(work.shard);
      const bool odd = work.shard % 2 == 1;
      const std::array<float, kElements> gradient = {
          0.1F * shard,
          -1 / (shard + 1),
          1e-8F + shard,
          -0.0F,                       // -0 in all shards: only then the sum is -0
          odd ? -1.4e-38F : 1.5e-38F,  // the sum is a denormal float
          std::bit_cast<float>(odd ? 0xFFC00000 : 0x7FC00000)};  // determines which NaN the sum is
      if (by == By::kAll) {
        const void* const all = gradient.data();
        ASSERT_EQ(pliant_put_gradients(learner_, &all, PLIANT_FLOAT32, PLIANT_CPU, kScale),
                  PLIANT_OK);
      } else if (by == By::kAllAsDouble) {
        std::array<double, kElements> wide{};
        std::ranges::transform(gradient, wide.begin(), [](float each) { return kScale * each; });
        const void* const all = wide.data();
        ASSERT_EQ(pliant_put_gradients(learner_, &all, PLIANT_FLOAT64, PLIANT_CPU, 1), PLIANT_OK);
      } else if (by == By::kOne) {
        ASSERT_EQ(
            pliant_put_gradient(learner_, 0, gradient.data(), PLIANT_FLOAT32, PLIANT_CPU, kScale),
            PLIANT_OK);
      } else {
        for (std::size_t i = 0; i < kElements; ++i) work.gradient[i] = gradient[i] * kScale;
        ASSERT_EQ(pliant_gradients_ready(learner_, 0, 1), PLIANT_OK);
      }
      ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
    }
    std::filesystem::remove_all(folder_);
  };
  for (const By by : {By::kAll, By::kOne, By::kPlace, By::kAllAsDouble}) {
    train(by);
    const FlushesDenormals flushes;
    train(by);
  }
  ASSERT_EQ(reduced.size(), 8U);
  for (const auto& other : reduced) EXPECT_EQ(other, reduced.front());
  EXPECT_EQ(reduced.front()[3], std::bit_cast<std::uint32_t>(-0.0F));
  const float small = std::bit_cast<float>(reduced.front()[4]);
  EXPECT_TRUE(small > 0 && small < std::numeric_limits<float>::min()) << small;
}

TEST_F(PliantTest, BuffersAreThoseOfShardZero) {
  float statistic = 1;
  ASSERT_EQ(
      Describe({.train_samples = 4, .epochs = 1, .global_batch_size = 4, .logical_shards = 4}),
      PLIANT_OK);
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  RegisterMean(statistic);
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK);
  for (pliant_work work = Next(); work.kind != PLIANT_END; work = Next()) {
    if (work.kind == PLIANT_COMMIT) {
      EXPECT_EQ(statistic, 10) << "the value that shard 0 left";
      ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
      EXPECT_EQ(statistic, 10);
    } else {
      EXPECT_EQ(statistic, 1) << "the committed value, whatever the shard before wrote";
      statistic = 10.0F + static_cast<float>(work.shard);
      ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
    }
  }
}

// Like a program that keeps an average of its model, including BatchNorm's statistics.
TEST_F(PliantTest, ACommitMayChangeBuffers) {
  float statistic = 1;
  ASSERT_EQ(Describe({.train_samples = 4,
                      .test_samples = 1,
                      .epochs = 3,
                      .global_batch_size = 4,
                      .logical_shards = 4,
                      .wants_evaluation_results = 1}),
            PLIANT_OK);
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  RegisterMean(statistic);
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK);
  float committed = 1;
  for (pliant_work work = Next(); work.kind != PLIANT_END; work = Next()) {
    switch (work.kind) {
      case PLIANT_COMMIT: {
        EXPECT_EQ(statistic, committed + 1);
        statistic *= 10;
        const bool taken = work.step != 1;
        ASSERT_EQ(pliant_committed(learner_, taken ? 1 : 0), PLIANT_OK);
        if (taken) committed = (committed + 1) * 10;
        break;
      }
      case PLIANT_EVALUATED:
        EXPECT_EQ(statistic, committed);
        statistic = committed += 5;
        ASSERT_EQ(pliant_evaluated(learner_), PLIANT_OK);
        break;
      default:
        EXPECT_EQ(statistic, committed);
        statistic += 1;
        ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
    }
    EXPECT_TRUE(work.kind == PLIANT_TRAIN || work.kind == PLIANT_EVALUATE ||
                statistic == committed);
  }
  EXPECT_EQ(committed, ((1 + 1) * 10 + 5 + 5 + 1) * 10 + 5);
}

// The decision rests on results that all learners receive: here, the loss of the second evaluation.
TEST_F(PliantTest, AProgramHearsOfEvaluationsAndEndsWithOne) {
  ASSERT_EQ(Describe({.train_samples = 4,
                      .test_samples = 6,
                      .epochs = 9,
                      .global_batch_size = 4,
                      .logical_shards = 4,
                      .in_order = 1,
                      .wants_evaluation_results = 1}),
            PLIANT_OK);
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK);
  EXPECT_EQ(pliant_stop(learner_), PLIANT_ORDER) << "there is no state yet that could be the last";
  std::vector<double> losses;
  uint64_t next_sample = 0;
  for (pliant_work work = Next(); work.kind != PLIANT_END; work = Next()) {
    switch (work.kind) {
      case PLIANT_TRAIN:
        EXPECT_EQ(work.samples[0], next_sample++ % 4);
        [[fallthrough]];
      case PLIANT_EVALUATE:
        EXPECT_EQ(pliant_evaluated(learner_), PLIANT_ORDER);
        ASSERT_EQ(pliant_shard_done(learner_, static_cast<double>(work.sample_count),
                                    static_cast<double>(work.sample_count) / (1.0 + values_[0]), 1),
                  PLIANT_OK);
        break;
      case PLIANT_COMMIT:
        values_[0] += 1;
        ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
        break;
      default:
        ASSERT_EQ(work.kind, PLIANT_EVALUATED);
        EXPECT_EQ(work.epoch, losses.size());
        EXPECT_EQ(work.step, losses.size() + 1);
        EXPECT_EQ(work.samples_sum, 6);
        losses.push_back(work.loss_sum);
        if (losses.size() == 2) {
          ASSERT_EQ(pliant_stop(learner_), PLIANT_OK);
        }
        ASSERT_EQ(pliant_evaluated(learner_), PLIANT_OK);
    }
  }
  EXPECT_THAT(losses, testing::ElementsAre(3, 2));
  pliant_end end{.struct_size = sizeof end};
  ASSERT_EQ(pliant_get_end(learner_, &end), PLIANT_OK);
  EXPECT_EQ(end.reason, PLIANT_COMPLETED);
  EXPECT_EQ(end.step, 2);
}

// Registered tensors change in evaluations, too. The program leaves during work of this kind in
// this epoch.
struct Leave {
  int32_t kind;
  uint64_t epoch;
};
pliant_end TrainUntil(pliant_learner* learner, pliant_tensor tensor, std::optional<Leave> leave) {
  const pliant_training training = {.struct_size = sizeof training,
                                    .train_samples = 4,
                                    .test_samples = 4,
                                    .epochs = 9,
                                    .global_batch_size = 4,
                                    .logical_shards = 4,
                                    .wants_evaluation_results = 1};
  EXPECT_EQ(pliant_describe(learner, &training), PLIANT_OK);
  auto* const values = static_cast<float*>(tensor.data);
  values[0] = 0;
  EXPECT_EQ(pliant_register(learner, &tensor, nullptr), PLIANT_OK);
  EXPECT_EQ(pliant_start(learner), PLIANT_OK) << pliant_last_error();
  pliant_work work{.struct_size = sizeof work};
  while (pliant_next(learner, 20, &work) == PLIANT_OK && work.kind != PLIANT_END) {
    if (leave && work.kind == leave->kind && work.epoch == leave->epoch) pliant_leave(learner);
    pliant_status status = PLIANT_OK;
    switch (work.kind) {
      case PLIANT_COMMIT:
        values[0] += 1;
        status = pliant_committed(learner, 1);
        break;
      case PLIANT_EVALUATED:
        values[0] *= 2;
        status = pliant_evaluated(learner);
        break;
      case PLIANT_LOADED:
        status = pliant_loaded(learner);
        break;
      default:
        status = pliant_shard_done(learner, static_cast<double>(work.sample_count), 1, 1);
    }
    EXPECT_EQ(status, PLIANT_OK) << pliant_last_error();
  }
  pliant_end end{.struct_size = sizeof end};
  EXPECT_EQ(pliant_get_end(learner, &end), PLIANT_OK) << pliant_last_error();
  return end;
}

TEST_F(PliantTest, AnInterruptedEvaluationHasACheckpointOfItsOwn) {
  const Leave leaves[] = {{PLIANT_TRAIN, 0}, {PLIANT_TRAIN, 1}, {PLIANT_EVALUATE, 1}};
  for (const Leave& leave : leaves) {
    EXPECT_EQ(TrainUntil(learner_, Tensor("model.w"), leave).reason, PLIANT_DRAINED);
    OpenAgain();
  }
  std::vector<std::string> checkpoints;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "local")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-")) checkpoints.push_back(name.substr(0, name.rfind("-m")));
  }
  EXPECT_THAT(checkpoints, testing::UnorderedElementsAre("step-000000000001-t000000000001",
                                                         "step-000000000002-t000000000003",
                                                         "step-000000000002-t000000000004"));

  pliant_close(std::exchange(learner_, nullptr));
  ASSERT_EQ(setenv("PLIANT_VERIFY_REPLAY", "1", 1), 0);
  Open();
  ASSERT_EQ(unsetenv("PLIANT_VERIFY_REPLAY"), 0);
  const pliant_end end = TrainUntil(learner_, Tensor("model.w"), std::nullopt);
  EXPECT_EQ(end.reason, PLIANT_DRAINED);
  EXPECT_STREQ(end.message, "2 checkpoints after step 1 are the same bits");
}

// The caller's struct ends before in_order.
TEST_F(PliantTest, DoesNotReadFieldsThatAnOlderCallerDidNotSet) {
  pliant_training training = {.train_samples = 32,
                              .epochs = 1,
                              .global_batch_size = 32,
                              .logical_shards = 1,
                              .in_order = 1};
  training.struct_size = offsetof(pliant_training, in_order);
  ASSERT_EQ(pliant_describe(learner_, &training), PLIANT_OK) << pliant_last_error();
  ASSERT_EQ(Register(Tensor("model.w")), PLIANT_OK);
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK);
  const pliant_work work = Next();
  ASSERT_EQ(work.sample_count, 32U);
  EXPECT_FALSE(std::is_sorted(work.samples, work.samples + work.sample_count));
}

// Bytes that the C library keeps after a large amount was freed.
std::size_t KeptByTheProcess() {
  constexpr std::size_t kBlock = std::size_t{2} << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 48; ++i) blocks.push_back(std::malloc(kBlock));
  for (void* const block : blocks) std::free(block);
  return ::mallinfo2().fordblks;
}

TEST_F(PliantTest, FreedMemoryIsKeptForWhoAsksForIt) {
  constexpr std::size_t kMany = std::size_t{64} << 20;
  if (std::getenv("GLIBC_TUNABLES") != nullptr) GTEST_SKIP() << "the environment decides";
  const std::size_t used = ::mallinfo2().uordblks;
  const std::vector<char> some(64 << 10);
  if (::mallinfo2().uordblks < used + some.size()) GTEST_SKIP() << "another allocator is in place";
  Start();
  EXPECT_EQ(Next().kind, PLIANT_TRAIN);
  EXPECT_LT(KeptByTheProcess(), kMany) << "a host program's allocator settings stay unchanged";
  OpenAgain(/*keep_freed_memory=*/true);
  Start();
  EXPECT_EQ(Next().kind, PLIANT_TRAIN);
  EXPECT_GE(KeptByTheProcess(), kMany);
}

TEST_F(PliantTest, AProgramThatFailsEnds) {
  Start();
  EXPECT_EQ(Next().kind, PLIANT_TRAIN);
  ASSERT_EQ(pliant_fail(learner_, 1, "the data are bad"), PLIANT_OK);
  EXPECT_EQ(Next().kind, PLIANT_END);
  pliant_end end{.struct_size = sizeof end};
  ASSERT_EQ(pliant_get_end(learner_, &end), PLIANT_OK);
  EXPECT_EQ(end.reason, PLIANT_LEARNER_FAILED);
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_STREQ(end.message, "the data are bad");
}

TEST_F(PliantTest, OneThatIsRefusedWhileItStartsSaysWhy) {
  pliant_close(std::exchange(learner_, nullptr));
  ASSERT_EQ(setenv("PLIANT_TEST_SETTINGS", "sampleLedger=/dev/null/ledger", 1), 0);
  Open();
  ASSERT_EQ(unsetenv("PLIANT_TEST_SETTINGS"), 0);
  Start();
  EXPECT_EQ(Next().kind, PLIANT_END);
  pliant_end end{.struct_size = sizeof end};
  ASSERT_EQ(pliant_get_end(learner_, &end), PLIANT_OK);
  EXPECT_EQ(end.reason, PLIANT_LEARNER_FAILED);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.message, HasSubstr("cannot write the ledger /dev/null/ledger/"));
}

TEST_F(PliantTest, OneThatFailsBeforeItStartsHasAnEndToo) {
  ASSERT_EQ(pliant_fail(learner_, 0, "no data"), PLIANT_OK);
  pliant_end end{.struct_size = sizeof end};
  ASSERT_EQ(pliant_get_end(learner_, &end), PLIANT_OK);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(pliant_start(learner_), PLIANT_ORDER);
}

TEST_F(PliantTest, LeavesAtABoundaryWhenSignalled) {
  Start(/*epochs=*/1'000'000);
  pliant_work work = Next();
  ASSERT_EQ(::kill(getpid(), SIGTERM), 0);
  std::int32_t kind_before = 0;
  for (; work.kind != PLIANT_END; work = Next()) {
    kind_before = work.kind;
    if (work.kind == PLIANT_TRAIN) {
      ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
    } else {
      ASSERT_EQ(pliant_committed(learner_, 1), PLIANT_OK);
    }
  }
  EXPECT_EQ(kind_before, PLIANT_COMMIT) << "a step in progress is finished";
  pliant_end end{.struct_size = sizeof end};
  ASSERT_EQ(pliant_get_end(learner_, &end), PLIANT_OK);
  EXPECT_EQ(end.reason, PLIANT_DRAINED);
  EXPECT_STREQ(end.message, "left with a checkpoint");
}

TEST_F(PliantTest, OneThatFetchesNoMoreWorkMayEnd) {
  pliant_close(std::exchange(learner_, nullptr));
  ASSERT_EQ(setenv("PLIANT_GRACE_SECONDS", "1", 1), 0);
  Open();
  ASSERT_EQ(unsetenv("PLIANT_GRACE_SECONDS"), 0);
  Start();
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  ASSERT_EQ(pliant_shard_done(learner_, 1, 0, 0), PLIANT_OK);
  ASSERT_EQ(pliant_leave(learner_), PLIANT_OK);
  pliant_end end{.struct_size = sizeof end};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (pliant_get_end(learner_, &end) == PLIANT_ORDER) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it waits for a pliant_next";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(Next(0).kind, PLIANT_END);
}

TEST_F(PliantTest, ClosedInTheMiddle) {
  Start();
  EXPECT_EQ(Next().kind, PLIANT_TRAIN);
  pliant_close(learner_);
  learner_ = nullptr;
  ASSERT_EQ(pliant_open(nullptr, &learner_), PLIANT_OK) << "and another can follow";
}

// Other threads print, or ask for learners, when a program closes its learner.
TEST_F(PliantTest, ClosedWhileOtherThreadsCall) {
  for (int round = 0; round < 10; ++round) {
    Start();
    std::atomic<int> calls = 0;
    const auto call_until_refused = [&calls, learner = learner_] {
      pliant_status status = PLIANT_OK;
      while (status == PLIANT_OK) {
        status = pliant_request_learners(learner, 1);
        if (status == PLIANT_OK) status = pliant_keep_output(learner, "x", 1);
        ++calls;
      }
      EXPECT_EQ(status, PLIANT_ORDER);
      EXPECT_STREQ(pliant_last_error(), "the learner is closed");
    };
    {
      const std::jthread one(call_until_refused);
      const std::jthread other(call_until_refused);
      while (calls < 100) std::this_thread::yield();
      pliant_close(learner_);
      pliant_close(learner_);
    }
    Open();
  }
}

TEST_F(PliantTest, ClosedWhileAnotherThreadWaitsForWork) {
  pliant_close(std::exchange(learner_, nullptr));
  OpenInJob();
  Start();
  std::jthread waits([learner = learner_] {
    pliant_work work{.struct_size = sizeof work};
    const pliant_status status = pliant_next(learner, -1, &work);
    if (status == PLIANT_ORDER) return;  // the call came after the close
    EXPECT_EQ(status, PLIANT_OK) << pliant_last_error();
    EXPECT_EQ(work.kind, PLIANT_END);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  pliant_close(std::exchange(learner_, nullptr));
}

TEST_F(PliantTest, OlderCallersGetWhatTheyKnow) {
  Start();
  pliant_work work{};
  work.struct_size = offsetof(pliant_work, samples);
  work.sample_count = 77;
  ASSERT_EQ(pliant_next(learner_, 20, &work), PLIANT_OK);
  EXPECT_EQ(work.kind, PLIANT_TRAIN);
  EXPECT_EQ(work.sample_count, 77) << "not written";
  EXPECT_EQ(work.struct_size, offsetof(pliant_work, samples));
}

}  // namespace
