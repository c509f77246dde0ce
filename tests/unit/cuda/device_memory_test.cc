// A program whose tensors are on a GPU trains to the same bits as one with tensors in host memory.
// Runs with the stand-in for the driver and, if there is one, with the machine's own.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/unit/cuda/program_driver.h"
#include "trainer/binding/pliant.h"
#include "trainer/cuda/cuda_driver.h"

namespace pliant {
namespace {

using testing::HasSubstr;
using Values = std::array<float, 5>;
constexpr int64_t kBiases = 2;
constexpr std::uint64_t kSeeds = 30;

TEST(CudaDriver, WithoutOneSaysWhatToDo) {
  for (const char* const path : {"libcuda-that-is-not-there.so.1", NO_DRIVER}) {
    const auto driver = CudaDriver::Open(path);
    ASSERT_FALSE(driver);
    EXPECT_EQ(driver.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(driver.error().message, HasSubstr(path));
    EXPECT_THAT(driver.error().message, HasSubstr("nvidia.com/gpu"));
    EXPECT_THAT(driver.error().message, HasSubstr("PLIANT_CPU"));
  }
}

// A tensor in host memory or, with a driver, on its device.
class Tensor {
 public:
  Tensor(const ProgramDriver* driver, Values values) : driver_(driver), host_(values) {
    if (driver_ == nullptr) return;
    device_ = driver_->Allocate(sizeof(Values));
    pinned_ = static_cast<Values*>(driver_->AllocatePinned(sizeof(Values)));
    Write(values);
  }
  ~Tensor() {
    if (driver_ == nullptr) return;
    driver_->Free(device_);
    driver_->FreePinned(pinned_);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  void* data() { return driver_ == nullptr ? host_.data() : device_; }
  int32_t where() const { return driver_ == nullptr ? PLIANT_CPU : PLIANT_CUDA; }

  // On a device the write is only queued.
  void Write(const Values& values) {
    host_ = values;
    if (driver_ == nullptr) return;
    Read();  // waits for earlier queued writes
    *pinned_ = values;
    QueueWrite();
  }
  void QueueWrite() { driver_->Queue(device_, pinned_, sizeof(Values)); }
  Values Read() {
    if (driver_ == nullptr) return host_;
    Values values;
    driver_->Read(values.data(), device_, sizeof(Values));
    return values;
  }

 private:
  const ProgramDriver* const driver_;
  Values host_;
  void* device_ = nullptr;
  Values* pinned_ = nullptr;
};

class DeviceMemoryTest : public testing::Test {
 protected:
  struct Outcome {
    std::string sha256;
    uint64_t step = 0;
    int32_t reason = 0;
    int evaluated = 0;
    int loaded = 0;
    std::array<Values, 3> left{};  // final biases, weights and momentum
    bool operator==(const Outcome&) const = default;
  };

  void SetUp() override {
    std::string why;
    driver_ = ProgramDriver::Find(why);
    if (driver_ == nullptr) GTEST_SKIP() << why;
    folder_ = std::filesystem::temp_directory_path() / ("pliant-gpu-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override {
    if (driver_ != nullptr && driver_->is_fake()) driver_->FailAfter(-1);
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void Open(const std::string& name) {
    const std::string folder = (folder_ / name).string();
    const pliant_options options = {.struct_size = sizeof options,
                                    .name = "test",
                                    .framework = "none 1",
                                    .checkpoint_dir = folder.c_str()};
    ASSERT_EQ(pliant_open(&options, &learner_), PLIANT_OK) << pliant_last_error();
    const pliant_training training = {.struct_size = sizeof training,
                                      .train_samples = 22,
                                      .test_samples = 5,
                                      .epochs = 3,
                                      .global_batch_size = 8,
                                      .logical_shards = 4,
                                      .wants_evaluation_results = 1};
    ASSERT_EQ(pliant_describe(learner_, &training), PLIANT_OK) << pliant_last_error();
  }
  pliant_status Register(const char* name, int32_t role, void* data, int32_t device,
                         int64_t elements = std::tuple_size_v<Values>) {
    const pliant_tensor tensor = {.struct_size = sizeof tensor,
                                  .name = name,
                                  .role = role,
                                  .dtype = PLIANT_FLOAT32,
                                  .dimensions = 1,
                                  .device = device,
                                  .shape = &elements,
                                  .data = data};
    return pliant_register(learner_, &tensor, nullptr);
  }
  pliant_work Next() {
    pliant_work work{.struct_size = sizeof work};
    EXPECT_EQ(pliant_next(learner_, 20, &work), PLIANT_OK) << pliant_last_error();
    return work;
  }
  void Close() {
    pliant_close(learner_);
    learner_ = nullptr;
  }

  // Trains in `folder`, continuing its checkpoints; leaves after `max_commits` commits. Without
  // `driver` the tensors are in host memory. `named`: the program names its stream.
  Outcome Train(const ProgramDriver* driver, const std::string& folder,
                std::optional<int> max_commits = std::nullopt, bool named = false) {
    Open(folder);
    Tensor bias(driver, {0.25, -0.25});
    Tensor weights(driver, {1, 2, 3, 4, 5});
    Tensor momentum(driver, {});
    Tensor statistics(driver, {0.5, 0, 0, 0, 0});
    Tensor gradient(driver, {});
    Tensor bias_gradient(driver, {});
    EXPECT_EQ(Register("model.b", PLIANT_PARAMETER, bias.data(), bias.where(), kBiases), PLIANT_OK);
    EXPECT_EQ(Register("model.w", PLIANT_PARAMETER, weights.data(), weights.where()), PLIANT_OK);
    EXPECT_EQ(Register("model.mean", PLIANT_BUFFER, statistics.data(), statistics.where()),
              PLIANT_OK);
    EXPECT_EQ(Register("optimizer.m", PLIANT_STATE, momentum.data(), momentum.where()), PLIANT_OK);
    if (named) {
      EXPECT_EQ(pliant_use_stream(learner_, driver->stream()), PLIANT_OK) << pliant_last_error();
    }
    EXPECT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
    Outcome outcome;
    int commits = 0;
    for (pliant_work work = Next(); work.kind != PLIANT_END && !HasFailure(); work = Next()) {
      Values w = weights.Read();
      Values b = bias.Read();
      if (work.kind == PLIANT_TRAIN) {
        Values mean = statistics.Read();
        Values g{};
        for (std::size_t i = 0; i < work.sample_count; ++i) {
          const auto sample = static_cast<float>(work.samples[i] % 7);
          for (std::size_t j = 0; j < g.size(); ++j) g[j] += w[j] * 0.3F + sample * mean[0];
          mean[0] = mean[0] * 0.9F + sample * 0.01F;
        }
        gradient.Write(g);
        bias_gradient.Write({b[0] * g[0], b[1] - g[1]});
        statistics.Write(mean);
        // In turn: each gradient by itself, all in one call, and one of them in a call.
        const std::array<const void*, 2> all = {
            work.shard % 3 == 1 ? bias_gradient.data() : nullptr, gradient.data()};
        if (work.shard % 3 == 0) {
          EXPECT_EQ(pliant_put_gradient(learner_, 0, bias_gradient.data(), PLIANT_FLOAT32,
                                        bias_gradient.where(), 1.5),
                    PLIANT_OK)
              << pliant_last_error();
          EXPECT_EQ(pliant_put_gradient(learner_, 1, gradient.data(), PLIANT_FLOAT32,
                                        gradient.where(), 1.5),
                    PLIANT_OK)
              << pliant_last_error();
        } else {
          EXPECT_EQ(
              pliant_put_gradients(learner_, all.data(), PLIANT_FLOAT32, gradient.where(), 1.5),
              PLIANT_OK)
              << pliant_last_error();
        }
        EXPECT_EQ(pliant_shard_done(learner_, static_cast<double>(work.sample_count), 0, 0),
                  PLIANT_OK);
      } else if (work.kind == PLIANT_COMMIT) {
        Values m = momentum.Read();
        std::array<float, kBiases + std::tuple_size_v<Values>> reduced;
        EXPECT_EQ(work.device, named ? PLIANT_CUDA : PLIANT_CPU);
        if (named) {
          driver->Read(reduced.data(), work.reduced, sizeof reduced);
        } else {
          std::copy_n(work.reduced, reduced.size(), reduced.begin());
        }
        for (std::size_t j = 0; j < m.size(); ++j) {
          m[j] = m[j] * 0.9F + reduced[kBiases + j];
          w[j] -= 0.1F * m[j];
        }
        for (std::size_t j = 0; j < kBiases; ++j) b[j] -= 0.1F * reduced[j];
        bias.Write(b);
        momentum.Write(m);
        weights.Write(w);
        EXPECT_EQ(pliant_committed(learner_, 1), PLIANT_OK) << pliant_last_error();
        if (++commits == max_commits) {
          EXPECT_EQ(pliant_leave(learner_), PLIANT_OK);
        }
      } else if (work.kind == PLIANT_EVALUATE) {
        EXPECT_EQ(pliant_shard_done(learner_, static_cast<double>(work.sample_count), w[0], 0),
                  PLIANT_OK);
      } else if (work.kind == PLIANT_EVALUATED) {
        ++outcome.evaluated;
        w[4] *= 0.5F;
        weights.Write(w);
        Values m = momentum.Read();
        for (float& value : m) value *= 0.5F;
        momentum.Write(m);
        EXPECT_EQ(pliant_evaluated(learner_), PLIANT_OK) << pliant_last_error();
      } else {
        EXPECT_EQ(work.kind, PLIANT_LOADED);
        ++outcome.loaded;
        outcome.left = {b, w, momentum.Read()};
        EXPECT_EQ(pliant_loaded(learner_), PLIANT_OK);
      }
    }
    pliant_end end{.struct_size = sizeof end};
    EXPECT_EQ(pliant_get_end(learner_, &end), PLIANT_OK) << pliant_last_error();
    if (outcome.loaded == 0) outcome.left = {bias.Read(), weights.Read(), momentum.Read()};
    if (end.parameters_sha256 != nullptr) outcome.sha256 = end.parameters_sha256;
    outcome.step = end.step;
    outcome.reason = end.reason;
    Close();
    return outcome;
  }

  const ProgramDriver* driver_ = nullptr;
  std::filesystem::path folder_;
  pliant_learner* learner_ = nullptr;
};

TEST_F(DeviceMemoryTest, GivesTheSameBitsAsHostMemory) {
  const Outcome host = Train(nullptr, "host");
  EXPECT_EQ(host.reason, PLIANT_COMPLETED);
  EXPECT_EQ(host.step, 9U);
  EXPECT_EQ(host.evaluated, 3);
  EXPECT_NE(host.left[0][0], 0.25) << "training changed it";
  EXPECT_NE(host.left[1][0], 1);
  EXPECT_EQ(Train(driver_, "device"), host);
}

TEST_F(DeviceMemoryTest, IsSavedAndLoaded) {
  const Outcome undisturbed = Train(nullptr, "host");
  const Outcome first = Train(driver_, "device", 4);
  EXPECT_EQ(first.reason, PLIANT_DRAINED);
  const Outcome second = Train(driver_, "device");
  EXPECT_EQ(second.loaded, 1);
  EXPECT_EQ(second.left, first.left) << "the first run's final state is on the device again";
  EXPECT_EQ(second.reason, PLIANT_COMPLETED);
  EXPECT_EQ(second.sha256, undisturbed.sha256);
}

TEST_F(DeviceMemoryTest, NeedsNoWaitWhereTheProgramNamesItsStream) {
  const Outcome host = Train(nullptr, "host");
  ASSERT_EQ(Train(driver_, "device", std::nullopt, /*named=*/true), host);
  if (!driver_->is_fake()) GTEST_SKIP() << "a real GPU runs in its own order only";
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    driver_->Restart(seed);
    const std::string folder = "seed" + std::to_string(seed);
    Train(driver_, folder, static_cast<int>(seed % 9), /*named=*/true);
    const Outcome rest = Train(driver_, folder, std::nullopt, /*named=*/true);
    ASSERT_EQ(rest.sha256, host.sha256);
    ASSERT_EQ(driver_->Violation(), "");
  }
}

TEST_F(DeviceMemoryTest, AStreamBelongsToTensors) {
  Open("device");
  EXPECT_EQ(pliant_use_stream(learner_, nullptr), PLIANT_ORDER);
  EXPECT_THAT(pliant_last_error(), HasSubstr("no tensor is on a GPU"));
  Close();
}

TEST_F(DeviceMemoryTest, RefusesMemoryOfTheHost) {
  Open("host");
  Values values{};
  EXPECT_EQ(Register("model.w", PLIANT_PARAMETER, values.data(), PLIANT_CUDA), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("tensor model.w: "));
  EXPECT_THAT(pliant_last_error(), HasSubstr("is no device memory"));
  EXPECT_EQ(Register("model.w", PLIANT_PARAMETER, values.data(), 7), PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("device is 7"));

  Values others{};
  ASSERT_EQ(Register("model.v", PLIANT_PARAMETER, others.data(), PLIANT_CPU), PLIANT_OK);
  ASSERT_EQ(Register("model.w", PLIANT_PARAMETER, values.data(), PLIANT_CPU), PLIANT_OK);
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  Tensor gradient(driver_, {});
  EXPECT_EQ(pliant_put_gradient(learner_, 0, values.data(), PLIANT_FLOAT32, PLIANT_CUDA, 1),
            PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("is no device memory"));
  std::array<const void*, 2> all = {gradient.data(), values.data()};
  EXPECT_EQ(pliant_put_gradients(learner_, all.data(), PLIANT_FLOAT32, PLIANT_CUDA, 1),
            PLIANT_INVALID);
  EXPECT_THAT(pliant_last_error(), HasSubstr("is no device memory"));
  all[1] = gradient.data();
  EXPECT_EQ(pliant_put_gradients(learner_, all.data(), PLIANT_FLOAT32, PLIANT_CUDA, 1), PLIANT_OK)
      << "none of them was accepted before: " << pliant_last_error();
  Close();
}

TEST_F(DeviceMemoryTest, OneThatIsBrokenIsTheNodesFailure) {
  if (!driver_->is_fake()) GTEST_SKIP() << "a real GPU does not fail on request";
  std::filesystem::create_directories(folder_);
  const std::string log = (folder_ / "termination-log").string();
  ::setenv("PLIANT_TERMINATION_LOG", log.c_str(), 1);
  for (const auto& [error, reason] : {std::pair(ProgramDriver::kUncorrectableEcc, "GpuFault"),
                                      std::pair(ProgramDriver::kLaunchFailed, "Failed")}) {
    driver_->Restart(1);
    Open("device");
    Tensor weights(driver_, {1, 2, 3, 4, 5});
    ASSERT_EQ(Register("model.w", PLIANT_PARAMETER, weights.data(), PLIANT_CUDA), PLIANT_OK);
    ASSERT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
    ASSERT_EQ(Next().kind, PLIANT_TRAIN);
    driver_->FailAfter(0, error);
    weights.QueueWrite();
    // As frameworks do, the program has waited for its GPU and says so in its own words.
    EXPECT_EQ(driver_->Broken(), error);
    ASSERT_EQ(pliant_fail(learner_, 0, "RuntimeError: CUDA error"), PLIANT_OK);
    EXPECT_EQ(Next().kind, PLIANT_END);
    driver_->FailAfter(-1);
    Close();
    EXPECT_THAT(*ReadFile(log), HasSubstr(reason));
    EXPECT_THAT(*ReadFile(log), HasSubstr("RuntimeError: CUDA error"));
  }
  ::unsetenv("PLIANT_TERMINATION_LOG");
}

TEST_F(DeviceMemoryTest, OneThatFailsEndsTheLearner) {
  if (!driver_->is_fake()) GTEST_SKIP() << "a real GPU does not fail on request";
  Open("device");
  Tensor weights(driver_, {1, 2, 3, 4, 5});
  ASSERT_EQ(Register("model.w", PLIANT_PARAMETER, weights.data(), PLIANT_CUDA), PLIANT_OK);
  ASSERT_EQ(pliant_start(learner_), PLIANT_OK) << pliant_last_error();
  ASSERT_EQ(Next().kind, PLIANT_TRAIN);
  driver_->FailAfter(0);
  EXPECT_EQ(pliant_put_gradient(learner_, 0, weights.data(), PLIANT_FLOAT32, PLIANT_CUDA, 1),
            PLIANT_FAILED);
  EXPECT_THAT(pliant_last_error(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  driver_->FailAfter(-1);
  pliant_work work{.struct_size = sizeof work, .kind = PLIANT_TRAIN};
  for (; work.kind == PLIANT_TRAIN; work = Next()) {
    ASSERT_EQ(pliant_shard_done(learner_, 2, 0, 0), PLIANT_OK);
  }
  ASSERT_EQ(work.kind, PLIANT_COMMIT);
  driver_->FailAfter(0);
  weights.QueueWrite();
  EXPECT_EQ(pliant_committed(learner_, 1), PLIANT_FAILED) << "the step's own work has failed";
  driver_->FailAfter(-1);
  EXPECT_EQ(Next().kind, PLIANT_END);
  pliant_end end{.struct_size = sizeof end};
  ASSERT_EQ(pliant_get_end(learner_, &end), PLIANT_OK);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.message, HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  Close();
}

}  // namespace
}  // namespace pliant
