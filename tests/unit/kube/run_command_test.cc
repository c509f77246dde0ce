#include "operator/kube/run_command.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/unit/kube/temp_folder.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using testing::EndsWith;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

Command Shell(const std::string& script) { return {.program = "sh", .arguments = {"-c", script}}; }

TEST(RunCommand, GivesWhatTheProgramWritesAndHowItEnds) {
  const auto ran = RunCommand(Shell("echo out; echo complaint >&2; exit 7"));
  ASSERT_TRUE(ran) << ran.error();
  EXPECT_EQ(ran->output, "out\n");
  EXPECT_EQ(ran->complaint, "complaint\n");
  EXPECT_EQ(ran->exit_status, 7);
  EXPECT_EQ(RunCommand(Shell("kill -TERM $$"))->exit_status, 128 + SIGTERM);
}

TEST(RunCommand, PassesArgumentsAsTheyAreAndVariablesBesideItsOwn) {
  setenv("PLIANT_TEST_KEPT", "kept", 1);
  setenv("PLIANT_TEST_CHANGED", "old", 1);
  Command command = Shell("printf '%s|' \"$@\" \"$PLIANT_TEST_KEPT\" \"$PLIANT_TEST_CHANGED\"");
  for (const char* argument : {"sh", "two words", "$HOME; 'x'", ""}) {
    command.arguments.emplace_back(argument);
  }
  command.environment = {"PLIANT_TEST_CHANGED=new=er"};
  EXPECT_EQ(RunCommand(command)->output, "two words|$HOME; 'x'||kept|new=er|");
}

TEST(RunCommand, TheProgramReadsNothingAndInheritsNoFile) {
  const int open_file = open("/dev/null", O_RDONLY);  // not closed on exec
  const auto ran = RunCommand(
      Shell("cat; [ -e /proc/self/fd/" + std::to_string(open_file) + " ] && echo inherited"));
  close(open_file);
  EXPECT_EQ(ran->output, "");
}

TEST(RunCommand, WhatIsNoProgramIsNotFound) {
  const TempFolder folder;
  const std::string no_program = folder.Write("plugin", "#!/bin/sh\n");
  for (const std::string& program :
       {std::string("no-such-program"), folder.path() + "/none", no_program}) {
    const auto ran = RunCommand({.program = program});
    ASSERT_FALSE(ran) << program;
    EXPECT_EQ(ran.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(ran.error().message, HasSubstr(program));
  }
}

TEST(RunCommand, MuchOutputArrivesWholeAndTooMuchIsRefused) {
  Command command = Shell("head -c 1000000 /dev/zero");
  EXPECT_EQ(RunCommand(command)->output.size(), 1'000'000u);
  command.output_bytes_most = 999'999;
  EXPECT_EQ(RunCommand(command).error().code, ErrorCode::kInvalid);
  const auto endless = RunCommand({.program = "cat", .arguments = {"/dev/zero"}});
  EXPECT_EQ(endless.error().code, ErrorCode::kInvalid);
}

TEST(RunCommand, OfALongComplaintTheEndIsKept) {
  const auto ran = RunCommand(Shell("head -c 100000 /dev/zero >&2; echo last >&2"));
  EXPECT_LE(ran->complaint.size(), 512u);
  EXPECT_THAT(ran->complaint, EndsWith("last\n"));
}

// Whether the process that wrote its id to `file` ends.
bool Ends(const std::string& file) {
  const pid_t process = std::stoi(ReadFile(file).value_or("0"));
  for (int i = 0; i < 200; ++i) {
    const auto status = ReadFile("/proc/" + std::to_string(process) + "/stat");
    if (!status || status->contains(") Z ")) return process > 0;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(RunCommand, OneThatTakesTooLongIsKilledWithWhatItStarted) {
  const TempFolder folder;
  const std::string file = folder.Write("pid", "");
  Command command = Shell("sleep 60 & echo $! > " + file + "; wait");
  command.time_most = 300ms;
  const auto begin = Clock::now();
  EXPECT_EQ(RunCommand(command).error().code, ErrorCode::kTimeout);
  EXPECT_LT(Clock::now() - begin, 5s);
  EXPECT_TRUE(Ends(file));
}

TEST(RunCommand, OneThatIsNoLongerWantedIsKilled) {
  std::stop_source stop;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  const auto begin = Clock::now();
  const auto ran = RunCommand({.program = "sleep", .arguments = {"60"}}, stop.get_token());
  EXPECT_EQ(ran.error().code, ErrorCode::kCancelled);
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(RunCommand, WhatItLeavesRunningIsNotWaitedFor) {
  const auto begin = Clock::now();
  const auto ran = RunCommand(Shell("sleep 15 & echo done"));
  EXPECT_EQ(ran->output, "done\n");
  EXPECT_LT(Clock::now() - begin, 10s);
}

}  // namespace
}  // namespace pliant::kube
