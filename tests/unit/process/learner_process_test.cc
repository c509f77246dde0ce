#include "trainer/process/learner_process.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "tests/unit/process/one_weight.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {
namespace {

using testing::HasSubstr;

class LearnerProcessTest : public testing::Test {
 protected:
  LearnerProcessTest() {
    options_.environment.checkpoint_dir = folder_;
    options_.training.global_batch_size = 1;
    options_.take_signals = false;
  }
  ~LearnerProcessTest() override { std::filesystem::remove_all(folder_); }

  LearnerProcess& Make(std::uint64_t epochs = 1) {
    process_.reset();
    program_.emplace(epochs);
    thread_ = NewProgramThread(*program_);
    return process_.emplace(*thread_, options_,
                            ScheduleOf(options_.training, program_->info()).value());
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / Format("learner-process-{}", getpid());
  RunLearnerOptions options_;
  std::optional<OneWeight> program_;
  std::unique_ptr<ProgramThread> thread_;
  std::optional<LearnerProcess> process_;
};

TEST_F(LearnerProcessTest, TrainsToTheEnd) {
  std::vector<std::string> lines;
  options_.on_metrics_line = [&](std::string_view line) { lines.emplace_back(line); };
  options_.environment.test.ledger_dir = folder_;
  LearnerProcess& process = Make(/*epochs=*/3);
  ASSERT_TRUE(process.Prepare());
  const auto exit = process.Run();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->reason, LeftReason::kCompleted);
  EXPECT_EQ(exit->step, 3);
  EXPECT_FALSE(process.interrupted());
  EXPECT_FALSE(lines.empty());
  process_.reset();
  EXPECT_FALSE(ReadFile(folder_ / "local.jsonl").value_or("").empty()) << "the ledger";
  EXPECT_FALSE(ReadFile(folder_ / "local" / "metrics.jsonl").value_or("").empty());
}

TEST_F(LearnerProcessTest, RefusesWhatCannotBeOpenedBeforeItStarts) {
  options_.environment.test.ledger_dir = "/dev/null/ledger";
  const Status ledger = Make().Prepare();
  ASSERT_FALSE(ledger);
  EXPECT_THAT(ledger.error().message, HasSubstr("/dev/null/ledger"));

  options_.environment.test.ledger_dir.clear();
  options_.environment.coordinator.emplace();
  options_.environment.pod_ip = "192.0.2.1";  // an address of no machine
  options_.environment.coordinator->peer_key = std::string(32, 'k');
  const Status listen = Make().Prepare();
  ASSERT_FALSE(listen);
  EXPECT_THAT(listen.error().message, HasSubstr("listen on 192.0.2.1"));
}

TEST_F(LearnerProcessTest, OneOfSeveralRanksHasALedgerOfItsOwn) {
  options_.environment.test.ledger_dir = folder_;
  options_.environment.local_rank = 1;
  ASSERT_TRUE(Make().Prepare());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "local.1.jsonl"));
}

TEST_F(LearnerProcessTest, IsAskedToLeaveByAnotherThread) {
  options_.on_start = [](const LearnerControl& control) { control.leave(); };
  LearnerProcess& process = Make(/*epochs=*/1'000'000'000);
  ASSERT_TRUE(process.Prepare());
  const auto exit = process.Run();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->reason, LeftReason::kDrained);
  EXPECT_FALSE(process.interrupted()) << "only Ctrl-C sets it";
}

TEST_F(LearnerProcessTest, CtrlCInterruptsWhoTrainsAlone) {
  for (const int signal : {SIGINT, SIGTERM}) {
    HoldStopSignals();
    options_.take_signals = true;
    options_.on_start = [&](const LearnerControl&) { kill(getpid(), signal); };
    LearnerProcess& process = Make(/*epochs=*/1'000'000'000);
    ASSERT_TRUE(process.Prepare());
    const auto exit = process.Run();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->reason, LeftReason::kDrained);
    EXPECT_EQ(process.interrupted(), signal == SIGINT);
    process_.reset();
    ReleaseStopSignals();
  }
}

TEST_F(LearnerProcessTest, OneOfAJobIsNotInterruptedButLeaves) {
  HoldStopSignals();
  options_.take_signals = true;
  options_.on_start = [&](const LearnerControl&) { kill(getpid(), SIGINT); };
  options_.environment.coordinator.emplace();
  options_.environment.coordinator->host = "127.0.0.1";
  options_.environment.coordinator->port = "1";  // where no server listens
  options_.environment.grace = std::chrono::milliseconds(50);
  LearnerProcess& process = Make();
  ASSERT_TRUE(process.Prepare());
  ASSERT_TRUE(process.Run());
  EXPECT_FALSE(process.interrupted());
  process_.reset();
  ReleaseStopSignals();
}

}  // namespace
}  // namespace pliant
