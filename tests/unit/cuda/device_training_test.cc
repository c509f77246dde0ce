// A program that only queues work on its GPU trains to the bits of the host, without a race between
// streams, and without waiting for the GPU. Runs with the stand-in for the driver and, if there is
// one, with the machine's own.

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/device/machine.h"
#include "tests/device/small_program.h"
#include "tests/unit/cuda/program_driver.h"

namespace pliant {
namespace {

// Orders of the stand-in's operations. A sanitizer looks for other things than races of streams.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 40;
#else
constexpr std::uint64_t kSeeds = 500;
#endif
constexpr std::uint64_t kSteps = 21;  // two of them are measured

class DeviceTrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    control_ = ProgramDriver::Find(why);
    if (control_ == nullptr) GTEST_SKIP() << why;
    if (control_->is_fake()) control_->Restart(1);
    driver_ = *CudaDriver::Open();
    folder_ = std::filesystem::temp_directory_path() / ("pliant-train-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override {
    if (control_ != nullptr && control_->is_fake()) control_->FailAfter(-1);
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  using OnCommit = std::function<void(pliant_learner*, const pliant_work&)>;

  SmallProgram::Outcome Train(Machine& machine, const std::string& name, OnCommit on_commit = {},
                              int logical_shards = 4) {
    const std::string folder = (folder_ / name).string();
    return SmallProgram::Train(machine, {.checkpoint_dir = folder.c_str(),
                                         .batch_size = 8,
                                         .logical_shards = logical_shards,
                                         .on_commit = std::move(on_commit)});
  }
  SmallProgram::Outcome TrainOnHost() {
    HostMachine host;
    return Train(host, "host");
  }

  const ProgramDriver* control_ = nullptr;
  std::shared_ptr<const CudaDriver> driver_;
  std::filesystem::path folder_;
};

TEST_F(DeviceTrainingTest, GivesTheBitsOfTheHost) {
  const SmallProgram::Outcome host = TrainOnHost();
  EXPECT_EQ(host.reason, PLIANT_COMPLETED);
  EXPECT_EQ(host.step, kSteps);
  EXPECT_GT(host.loss_sum, 0);
  CudaMachine gpu(driver_);
  const SmallProgram::Outcome device = Train(gpu, "device");
  EXPECT_EQ(device.reason, PLIANT_COMPLETED);
  EXPECT_EQ(device.sha256, host.sha256);
  EXPECT_EQ(device.loss_sum, host.loss_sum);
  EXPECT_EQ(device.correct_sum, host.correct_sum);
}

// The device makes two named sums, and the host weighs the shards. With several seeds the copies
// of the sums come in several orders.
TEST_F(DeviceTrainingTest, WeightsAndNamedSumsHaveTheBitsOfTheHost) {
  const auto weigh = [&](Machine& machine, const std::string& name) {
    const std::string folder = (folder_ / name).string();
    return SmallProgram::Train(
        machine,
        {.checkpoint_dir = folder.c_str(), .batch_size = 8, .logical_shards = 4, .weighs = true});
  };
  HostMachine host_machine;
  const SmallProgram::Outcome host = weigh(host_machine, "weighed");
  EXPECT_EQ(host.weight_sum, 6 + 0 + 1 + 2) << "six samples, and one to two more by shard";
  EXPECT_NE(host.sha256, TrainOnHost().sha256);
  for (std::uint64_t seed = 1; seed <= (control_->is_fake() ? 10 : 1); ++seed) {
    if (control_->is_fake()) control_->Restart(seed);
    CudaMachine gpu(driver_);
    const SmallProgram::Outcome device = weigh(gpu, "device" + std::to_string(seed));
    EXPECT_EQ(device.sha256, host.sha256) << seed;
    EXPECT_EQ(device.loss_sum, host.loss_sum);
    EXPECT_EQ(device.weight_sum, host.weight_sum);
    EXPECT_EQ(device.sums, host.sums);
    EXPECT_EQ(device.sums.size(), 2U);
    if (control_->is_fake()) {
      EXPECT_EQ(control_->Violation(), "");
    }
  }
}

TEST_F(DeviceTrainingTest, AStepNeverWaitsForTheDevice) {
  if (!control_->is_fake()) GTEST_SKIP() << "only the stand-in counts";
  CudaMachine gpu(driver_);
  int before = -1;
  int after = -1;
  Train(gpu, "device", [&](pliant_learner*, const pliant_work& work) {
    if (work.step == 2) before = control_->HostWaits();
    if (work.step == kSteps - 1) after = control_->HostWaits();
  });
  EXPECT_EQ(after, before);
  EXPECT_EQ(control_->Violation(), "");
}

// docs/gpu-proof.md has this table.
TEST_F(DeviceTrainingTest, AStepQueuesLittle) {
  if (!control_->is_fake()) GTEST_SKIP() << "only the stand-in counts";
  constexpr std::uint64_t kFirst = 4;  // in the middle of an epoch, and not measured
  constexpr std::uint64_t kLast = 5;
  struct Case {
    int shards;
    std::map<std::string, int> calls;  // of each step
  };
  for (const Case& c : {Case{1,
                             {{"cuEventRecord", 4},
                              {"cuLaunchKernel", 5},
                              {"cuMemcpyDtoHAsync", 2},
                              {"cuMemcpyHtoDAsync", 1}}},
                        Case{4,
                             {{"cuEventRecord", 7},
                              {"cuLaunchKernel", 15},
                              {"cuMemcpyDtoHAsync", 5},
                              {"cuMemcpyHtoDAsync", 1},
                              {"cuMemsetD8Async", 1}}}}) {
    SCOPED_TRACE(c.shards);
    control_->Restart(1);
    CudaMachine gpu(driver_);
    std::map<std::string, int> calls;
    const auto count = [&](int sign) {
      for (const char* const name : {"cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent",
                                     "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync",
                                     "cuMemsetD8Async", "cuMemAlloc", "cuMemHostRegister"})
        calls[name] += sign * control_->Calls(name);
      calls["cuLaunchKernel"] -= sign * gpu.launches();  // the program's own
    };
    const std::string folder = "calls" + std::to_string(c.shards);
    Train(
        gpu, folder,
        [&](pliant_learner*, const pliant_work& work) {
          if (work.step == kFirst) count(-1);
          if (work.step == kLast) count(1);
        },
        c.shards);
    std::erase_if(calls, [](const auto& call) { return call.second == 0; });
    EXPECT_THAT(calls, testing::ContainerEq(c.calls));
  }
}

// A variable of the environment, for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST_F(DeviceTrainingTest, AReplayComputesTheSameStepsOnTheGpu) {
  const Variable often("PLIANT_CHECKPOINT_EVERY_STEPS", "3");
  const Variable all("PLIANT_CHECKPOINT_KEEP", "100");
  CudaMachine gpu(driver_);
  EXPECT_EQ(Train(gpu, "replay").reason, PLIANT_COMPLETED);
  const Variable replay("PLIANT_VERIFY_REPLAY", "3-12");
  const SmallProgram::Outcome again = Train(gpu, "replay");
  EXPECT_EQ(again.exit_code, 0) << again.message;
  EXPECT_THAT(again.message, testing::HasSubstr("3 checkpoints after step 3 are the same"));
  if (control_->is_fake()) {
    EXPECT_EQ(control_->Violation(), "");
  }
}

TEST_F(DeviceTrainingTest, HasNoRaceInAnyOrder) {
  if (!control_->is_fake()) GTEST_SKIP() << "a real GPU runs in its own order only";
  const std::string expected = TrainOnHost().sha256;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    control_->Restart(seed);
    CudaMachine gpu(driver_);
    const std::string folder = "seed" + std::to_string(seed);
    Train(gpu, folder, [&](pliant_learner* learner, const pliant_work& work) {
      if (work.step == seed % kSteps) pliant_leave(learner);
    });
    const SmallProgram::Outcome rest = Train(gpu, folder);
    ASSERT_EQ(rest.sha256, expected);
    ASSERT_EQ(control_->Violation(), "");
  }
}

}  // namespace
}  // namespace pliant
