#include "trainer/process/output_keeper.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"

namespace pliant {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class OutputKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              Format("output-keeper-{}-{}", getpid(),
                     ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(OutputKeeperTest, HoldsAllOutputFromBeforeTheEnd) {
  const auto path = folder_ / "logs" / "learner-1.log";
  {
    const auto keeper = NewOutputKeeper(path);
    for (int i = 0; i < 1000; ++i) keeper->Keep(Format("line {}\n", i));
  }
  const std::string text = ReadFile(path).value();
  EXPECT_THAT(text, StartsWith("line 0\nline 1\n"));
  EXPECT_THAT(text, EndsWith("line 998\nline 999\n"));
  {
    NewOutputKeeper(path)->Keep("again\n");
  }
  EXPECT_EQ(ReadFile(path).value(), text + "again\n");
}

TEST_F(OutputKeeperTest, HoldsAllOutputFromBeforeAFlush) {
  const auto path = folder_ / "learner-1.log";
  const auto keeper = NewOutputKeeper(path);
  for (const std::string want : {"one\n", "one\ntwo\n"}) {
    keeper->Keep(want.substr(want.size() - 4));
    keeper->Flush();
    EXPECT_EQ(ReadFile(path).value(), want);
  }
}

TEST_F(OutputKeeperTest, FilesAreOfLimitedSize) {
  const auto path = folder_ / "learner-1.log";
  for (int i = 0; i < 20; ++i) {
    NewOutputKeeper(path, {.max_file_bytes = 1000})->Keep(std::string(99, 'a' + i) + "\n");
  }
  EXPECT_LE(std::filesystem::file_size(path), 1000U);
  EXPECT_LE(std::filesystem::file_size(folder_ / "learner-1.log.1"), 1000U);
  EXPECT_THAT(ReadFile(path).value(), StartsWith("pliant: this file was full"));
  EXPECT_THAT(ReadFile(path).value(), EndsWith("tt\n"));
}

TEST_F(OutputKeeperTest, TheOldestFilesGo) {
  std::ofstream(folder_ / "somebody's") << "x";
  for (int i = 0; i < 9; ++i) {
    const auto path = folder_ / Format("learner-{}.log", i);
    NewOutputKeeper(path, {.max_files = 3})->Keep("x\n");
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(9 - i));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "learner-4.log"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "somebody's")) << "files of others stay";
  for (int i = 5; i < 9; ++i) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / Format("learner-{}.log", i))) << i;
  }
}

TEST_F(OutputKeeperTest, AQuietLearnerWhoseFileIsRemovedMakesAnother) {
  const auto path = folder_ / "learner-1.log";
  auto keeper = NewOutputKeeper(path);
  keeper->Keep("before\n");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ReadFile(path).value_or("") != "before\n" && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(std::filesystem::remove(path));
  keeper->Keep("after\n");
  keeper.reset();
  EXPECT_EQ(ReadFile(path).value_or(""), "after\n");
}

TEST_F(OutputKeeperTest, AVolumeThatIsFullCostsLinesOnly) {
  const auto full = folder_ / "full.log";
  std::filesystem::create_symlink("/dev/full", full);
  {
    const auto keeper = NewOutputKeeper(full);
    for (int i = 0; i < 3; ++i) keeper->Keep("a line that is lost\n");
  }
  const auto path = folder_ / "learner-1.log";
  std::filesystem::create_directory(path);  // makes opening it fail
  {
    const auto keeper = NewOutputKeeper(path, {.max_waiting_bytes = 100});
    for (int i = 0; i < 10; ++i) keeper->Keep(std::string(60, 'x'));
  }
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST_F(OutputKeeperTest, AVolumeThatHangsKeepsNobody) {
  const auto path = folder_ / "learner-1.log";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);  // opening it waits for a reader that never comes
  const auto begin = std::chrono::steady_clock::now();
  {
    const auto keeper = NewOutputKeeper(
        path, {.max_waiting_bytes = 1000, .max_flush = std::chrono::milliseconds(50)});
    for (int i = 0; i < 100; ++i) keeper->Keep(std::string(99, 'x'));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace pliant
