#include "trainer/process/paced_thread.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "trainer/runtime/pulled_thread.h"

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

class OneShard final : public Operation {
 public:
  OneShard(const ShardTask& task, bool add) : task_(task), add_(add) {}

  std::optional<Work> Next() override {
    if (sums_) return std::nullopt;
    ShardWork work{.task = &task_, .gradient = {}, .buffers = {}, .left = {}};
    if (add_) {
      work.left = left_;
      work.added = &added_;
    }
    return work;
  }
  void Done(Result<ShardSums> sums) override { sums_ = std::move(sums); }
  bool over() const override { return sums_.has_value(); }

  const Result<ShardSums>& sums() const { return *sums_; }

 private:
  const ShardTask task_;
  const bool add_;
  const std::array<float, 1> left_{};
  bool added_ = false;
  std::optional<Result<ShardSums>> sums_;
};

class PacedThreadTest : public testing::Test {
 protected:
  PacedThreadTest() { std::filesystem::remove(file_); }
  ~PacedThreadTest() override { std::filesystem::remove(file_); }

  void Write(const std::string& text) {
    const std::filesystem::path next = file_.string() + ".next";
    std::ofstream(next) << text;
    std::filesystem::rename(next, file_);
  }
  // The duration of `task`, alone or added to another one.
  std::chrono::nanoseconds Take(const ShardTask& task, bool add = false) {
    const auto begin = std::chrono::steady_clock::now();
    OneShard shard(task, add);
    std::promise<Status> over;
    paced_.Run(shard, [&](Status status) { over.set_value(std::move(status)); });
    EXPECT_TRUE(over.get_future().get());
    EXPECT_EQ(shard.sums().has_value(), task.step != 1);
    return std::chrono::steady_clock::now() - begin;
  }

  const std::filesystem::path file_ = std::filesystem::path(testing::TempDir()) /
                                      testing::UnitTest::GetInstance()->current_test_info()->name();
  QuickProgram program_;
  const std::unique_ptr<ProgramThread> thread_ = NewProgramThread(program_);
  PacedThread paced_{*thread_, file_};
};

TEST_F(PacedThreadTest, ATrainingShardTakesAtLeastSoLong) {
  Write("30\n");
  EXPECT_GE(Take({}), 30ms);
  EXPECT_GE(Take({}, /*add=*/true), 30ms);
}

TEST_F(PacedThreadTest, AProgramThatFetchesItsWorkIsKeptWithItsAnswer) {
  Write("30\n");
  PulledThread pulled(program_);
  PacedThread paced(pulled, file_);
  OneShard shard({}, /*add=*/false);
  std::optional<Status> over;
  paced.Run(shard, [&](Status status) { over = std::move(status); });
  ASSERT_TRUE(pulled.Next(0ms));
  const auto begin = std::chrono::steady_clock::now();
  pulled.Answer(ShardSums{});
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 25ms);
  EXPECT_EQ(over, Status()) << "at once, not at the next fetch";
}

TEST_F(PacedThreadTest, DoesNotPaceEvaluationsAndFailures) {
  Write("10000");
  EXPECT_LT(Take({.kind = TickKind::kEvaluate}), 5s);
  EXPECT_LT(Take({.step = 1}), 5s);
}

TEST_F(PacedThreadTest, TheShardUnderWayIsLetGo) {
  Write("10000");
  std::jthread release([this] {
    std::this_thread::sleep_for(100ms);
    std::filesystem::remove(file_);
  });
  const auto took = Take({});
  EXPECT_GE(took, 100ms);
  EXPECT_LT(took, 8s);
}

TEST_F(PacedThreadTest, ReadsWholeMilliseconds) {
  EXPECT_EQ(ReadPace(file_), 0ms) << "there is no file";
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
    EXPECT_EQ(
        pace.error().message,
        "PLIANT_PACE_FILE: " + file_.string() +
            " must hold a whole number of milliseconds from 0 to 10000, the minimum time of a "
            "shard");
    EXPECT_LT(Take({}), 5s) << "nothing waits";
  }
}

}  // namespace
}  // namespace pliant
