#include "trainer/process/paced_program.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace pliant {
namespace {
using namespace std::chrono_literals;

class QuickProgram final : public Program {
 public:
  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float>, std::span<std::byte>,
                                 GradientSink*) override {
    if (task.step == 1) return Invalid("a bad step");
    return ShardSums{.samples = 3};
  }
  Status Commit(const CommitTask&) override { return {}; }
  StateDict State() override { return {}; }
  Status LoadedState() override { return {}; }

 private:
  ProgramInfo info_{.gradient_elements = 1};
};

class PacedProgramTest : public testing::Test {
 protected:
  PacedProgramTest() { std::filesystem::remove(file_); }
  ~PacedProgramTest() override { std::filesystem::remove(file_); }

  void Write(const std::string& text) {
    const std::filesystem::path next = file_.string() + ".next";
    std::ofstream(next) << text;
    std::filesystem::rename(next, file_);
  }
  std::chrono::nanoseconds Take(const ShardTask& task) {
    const auto begin = std::chrono::steady_clock::now();
    const auto sums = paced_.ComputeShard(task, {}, {}, nullptr);
    if (sums) {
      EXPECT_EQ(sums->samples, 3);
    }
    return std::chrono::steady_clock::now() - begin;
  }

  const std::filesystem::path file_ = std::filesystem::path(testing::TempDir()) /
                                      testing::UnitTest::GetInstance()->current_test_info()->name();
  QuickProgram program_;
  PacedProgram paced_{program_, file_};
};

TEST_F(PacedProgramTest, ATrainingShardTakesAtLeastSoLong) {
  Write("30\n");
  EXPECT_GE(Take({}), 30ms);
  bool added = false;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(paced_.AddShard({}, {}, {}, added));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 30ms);
}

TEST_F(PacedProgramTest, WhatIsNoTrainingOrFailsIsNotKept) {
  Write("10000");
  EXPECT_LT(Take({.kind = TickKind::kEvaluate}), 5s);
  EXPECT_LT(Take({.step = 1}), 5s);
}

TEST_F(PacedProgramTest, TheShardUnderWayIsLetGo) {
  Write("10000");
  std::jthread release([this] {
    std::this_thread::sleep_for(100ms);
    std::filesystem::remove(file_);
  });
  const auto took = Take({});
  EXPECT_GE(took, 100ms);
  EXPECT_LT(took, 8s);
}

TEST_F(PacedProgramTest, ReadsWholeMilliseconds) {
  EXPECT_EQ(ReadPace(file_), 0ms) << "there is none";
  struct Case {
    const char* text;
    Result<Duration> want;
  };
  for (const Case& each : {Case{"0", 0ms}, Case{"25\n", 25ms}, Case{"10000", 10s}}) {
    Write(each.text);
    EXPECT_EQ(ReadPace(file_), each.want) << each.text;
  }
  for (const char* const wrong :
       {"", "ten", "-1", "1.5", "10001", "10 ms", "00000000000000000000000000000000000000001"}) {
    Write(wrong);
    const auto pace = ReadPace(file_);
    ASSERT_FALSE(pace) << wrong;
    EXPECT_EQ(pace.error().message,
              "PLIANT_PACE_FILE: " + file_.string() +
                  " must hold a whole number of milliseconds from 0 to 10000, the least time of a "
                  "shard");
    EXPECT_LT(Take({}), 5s) << "nothing waits";
  }
}

}  // namespace
}  // namespace pliant
