#include "trainer/runtime/run_learner.h"

#include <cstddef>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"

namespace pliant {
namespace {

// A model of one weight, which learns nothing.
class OneWeight final : public Program {
 public:
  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask&, std::span<float>, std::span<std::byte>,
                                 GradientSink*) override {
    return ShardSums{.samples = 1};
  }
  Status Commit(const CommitTask&) override { return {}; }
  StateDict State() override {
    return {{.name = "model.w", .bytes = std::as_writable_bytes(std::span(&weight_, 1))}};
  }
  Status LoadedState() override { return {}; }

 private:
  const ProgramInfo info_{
      .train_samples = 1, .epochs = 1, .gradient_elements = 1, .name = "one weight"};
  float weight_ = 0;
};

// Where memory runs out, for example: as anything else that a learner fails with.
TEST(RunLearner, WhatIsThrownIsHowTheLearnerEnds) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / Format("run-learner-{}", getpid());
  std::filesystem::create_directories(folder);
  RunLearnerOptions options;
  options.environment.checkpoint_dir = folder;
  options.environment.termination_log = folder / "termination";
  options.global_batch_size = 1;
  options.take_signals = false;
  options.on_start = [](const LearnerControl&) { throw std::bad_alloc(); };
  std::optional<LearnerExit> told;
  options.on_exit = [&](const LearnerExit& exit, int) { told = exit; };
  OneWeight program;
  EXPECT_EQ(RunLearner(program, options), 1);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, LeftReason::kFailed);
  EXPECT_EQ(told->message, "out of memory");
  EXPECT_THAT(ReadFile(folder / "termination").value_or(""), testing::HasSubstr("out of memory"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pliant
