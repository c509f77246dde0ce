#include "trainer/process/run_learner.h"

#include <filesystem>
#include <new>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "tests/unit/process/one_weight.h"

namespace pliant {
namespace {

// An exception, for example out of memory, is reported like any other failure.
TEST(RunLearner, ReportsAnExceptionAsTheEndOfTheLearner) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / Format("run-learner-{}", getpid());
  std::filesystem::create_directories(folder);
  RunLearnerOptions options;
  options.environment.checkpoint_dir = folder;
  options.environment.termination_log = folder / "termination";
  options.training.global_batch_size = 1;
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
