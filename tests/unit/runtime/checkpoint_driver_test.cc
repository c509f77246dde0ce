#include "trainer/runtime/checkpoint_driver.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/runtime/fake_checkpointer.h"
#include "tests/unit/runtime/fake_compute.h"
#include "trainer/checkpoint/volume_error.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr double kUnixOffset = 1e6;
constexpr Duration kCopyTime = milliseconds(10);
constexpr Duration kWriteTime = milliseconds(20);
const Error kNoSpace = VolumeError("write x", ENOSPC);

// A driver of rank `index` among `count` writers, and its notifications.
struct Driving {
  SimEventLoop loop;
  Tasks tasks{loop, [] {}};
  FakeCompute compute{loop};
  FakeCheckpointer checkpointer{loop};
  LearnerStats stats;
  std::vector<std::string> told;  // sent to rank 0
  std::vector<bool> done;
  CheckpointDriver driver{
      {.every_steps = 10},
      /*kept=*/3,
      kUnixOffset,
      {.tasks = tasks, .compute = compute, .checkpointer = checkpointer, .stats = stats},
      [this](const CheckpointSave& save, const Error& error) {
        told.push_back(save.rank_zero.name + ": " + error.message);
      }};

  Driving() {
    compute.time = kCopyTime;
    checkpointer.time = kWriteTime;
    driver.OnEntered(/*recovery=*/false);
  }
  void Save(StateSlice slice, Tick tick = 7) {
    driver.Save({.label = {.position = {.step = tick - 2, .tick = tick, .membership = {1, 2}},
                           .job = {},
                           .framework = "fake"},
                 .slice = slice,
                 .tick = tick,
                 .rank_zero = {.name = "zero"}},
                [this](bool saved) { done.push_back(saved); });
  }
  bool Due() const { return driver.Due({.kind = TickKind::kTrain, .step = 9}, 10); }
  // Due at a step that the policy does not name.
  bool DueOutOfTurn() const { return driver.Due({.kind = TickKind::kTrain, .step = 3}, 4); }
  std::ptrdiff_t looks() const { return std::ranges::count(checkpointer.asked, "publish"); }
};

TEST(CheckpointDriver, WritesAWholeStateAndSaysSo) {
  Driving it;
  it.loop.RunFor(seconds(100));
  EXPECT_TRUE(it.Due());
  it.Save({.index = 0, .count = 1});
  EXPECT_TRUE(it.driver.saving());
  EXPECT_TRUE(it.driver.writing());
  EXPECT_FALSE(it.Due()) << "one at a time";
  EXPECT_FALSE(it.driver.report()) << "no checkpoint was tried";
  it.loop.RunFor(kCopyTime + kWriteTime);
  EXPECT_EQ(it.compute.asked, std::vector<std::string>{"copy 0/1"});
  EXPECT_EQ(it.checkpointer.asked, std::vector<std::string>{"save 0 keep 3"});
  EXPECT_EQ(it.done, std::vector<bool>{true});
  EXPECT_FALSE(it.driver.saving());
  EXPECT_FALSE(it.driver.writing());
  EXPECT_EQ(it.driver.saved_tick(), 7U);
  ASSERT_TRUE(it.driver.report());
  EXPECT_EQ(*it.driver.report(), (CheckpointReport{.step = 5,
                                                   .membership = {1, 2},
                                                   .unix_seconds = kUnixOffset + 100.03,
                                                   .error = "",
                                                   .reason = ""}));
  EXPECT_EQ(it.stats.checkpoints, 1U);
  EXPECT_EQ(it.stats.saving, kCopyTime + kWriteTime);
  EXPECT_EQ(it.loop.pending(), 0U);
}

TEST(CheckpointDriver, AMemberWithoutASliceWritesNothing) {
  Driving it;
  it.Save({.index = 2, .count = 2});
  EXPECT_FALSE(it.driver.saving());
  EXPECT_FALSE(it.driver.writing());
  EXPECT_EQ(it.loop.pending(), 0U);
  EXPECT_TRUE(it.compute.asked.empty());
  EXPECT_TRUE(it.done.empty());
}

TEST(CheckpointDriver, TimeCountsFromTheLastOneThatBeganWhoeverWritesIt) {
  Driving it;
  CheckpointDriver by_time({.every = minutes(1)}, 1, 0,
                           {.tasks = it.tasks,
                            .compute = it.compute,
                            .checkpointer = it.checkpointer,
                            .stats = it.stats},
                           [](const CheckpointSave&, const Error&) {});
  by_time.OnEntered(true);
  it.loop.RunFor(seconds(59));
  by_time.Save({.label = {}, .slice = {.index = 4, .count = 2}, .tick = 3, .rank_zero = {}},
               [](bool) {});
  it.loop.RunFor(seconds(59));
  EXPECT_FALSE(by_time.Due({}, 1));
  it.loop.RunFor(seconds(1));
  EXPECT_TRUE(by_time.Due({}, 1));
}

TEST(CheckpointDriver, RankZeroLooksUntilAllSlicesAreThere) {
  Driving it;
  it.Save({.index = 0, .count = 3});
  it.loop.RunFor(seconds(2));
  EXPECT_FALSE(it.driver.writing()) << "its own slice is written";
  EXPECT_TRUE(it.driver.saving());
  EXPECT_TRUE(it.done.empty());
  const std::ptrdiff_t looks = it.looks();
  EXPECT_GE(looks, 4);
  it.checkpointer.slices.insert(1);
  it.loop.RunFor(seconds(2));
  EXPECT_TRUE(it.done.empty());
  it.checkpointer.slices.insert(2);
  it.loop.RunFor(milliseconds(300));
  EXPECT_EQ(it.done, std::vector<bool>{true});
  EXPECT_EQ(it.driver.saved_tick(), 7U);
  EXPECT_EQ(it.loop.pending(), 0U) << "it no longer polls";
}

TEST(CheckpointDriver, TheWriterOfTheLastSliceIsDoneWithoutALook) {
  Driving it;
  it.checkpointer.slices = {1, 2};
  it.Save({.index = 0, .count = 3});
  it.loop.RunFor(kCopyTime + kWriteTime);
  EXPECT_EQ(it.done, std::vector<bool>{true});
  EXPECT_EQ(it.looks(), 0);
}

TEST(CheckpointDriver, OthersAreDoneWithTheirSlices) {
  Driving it;
  it.Save({.index = 1, .count = 3});
  it.loop.RunFor(kCopyTime + kWriteTime);
  EXPECT_FALSE(it.driver.saving());
  EXPECT_TRUE(it.done.empty()) << "only rank 0 gets the result";
  EXPECT_FALSE(it.driver.saved_tick());
  EXPECT_EQ(it.stats.checkpoints, 0U) << "rank 0 counts it";
  EXPECT_EQ(it.loop.pending(), 0U);
}

// A peer that takes three times as long as this rank has failed, but 10 seconds are always allowed.
TEST(CheckpointDriver, ASliceThatDoesNotComeIsAFailure) {
  const struct {
    const char* name;
    Duration write_time;
    Duration timeout;
  } kCases[] = {{"quick", milliseconds(100), seconds(10)}, {"slow", seconds(20), seconds(60)}};
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    Driving it;
    it.compute.time = Duration::zero();
    it.checkpointer.time = test.write_time;
    it.Save({.index = 0, .count = 2});
    it.loop.RunFor(test.write_time);
    it.checkpointer.time = Duration::zero();
    it.loop.RunFor(test.timeout - milliseconds(1));
    EXPECT_TRUE(it.done.empty());
    it.loop.RunFor(milliseconds(300));
    EXPECT_EQ(it.done, std::vector<bool>{false});
    EXPECT_FALSE(it.driver.saving());
    EXPECT_EQ(it.driver.report()->error, "not all of its 2 slices were written");
    EXPECT_EQ(it.driver.report()->reason, "WriteFailed");
    EXPECT_FALSE(it.driver.saved_tick());
    EXPECT_EQ(it.stats.checkpoints_failed, 1U);
    EXPECT_TRUE(it.told.empty()) << "rank 0 need not notify itself";
  }
}

TEST(CheckpointDriver, RankZeroSaysWhyAnothersSliceIsMissing) {
  const std::string missing = "not all of its 2 slices were written";
  const struct {
    const char* name;
    Tick tick;       // the tick that the peer reports
    bool recovered;  // a recovery happened in between
    std::string error;
    std::string reason;
  } kCases[] = {
      {"reported for this one", 7, false, missing + ": peer: " + kNoSpace.message, "VolumeFull"},
      {"of one before", 6, false, missing, "WriteFailed"},
      {"of another try at the same tick", 7, true, missing, "WriteFailed"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    Driving it;
    if (test.recovered) {
      it.driver.OnSliceFailed({.name = "peer"}, {.tick = test.tick, .error = kNoSpace});
      it.driver.OnEntered(/*recovery=*/true);
      it.Save({.index = 0, .count = 2});
    } else {
      it.Save({.index = 0, .count = 2});
      it.loop.RunFor(seconds(1));
      it.driver.OnSliceFailed({.name = "peer"}, {.tick = test.tick, .error = kNoSpace});
    }
    it.loop.RunFor(seconds(11));
    EXPECT_EQ(it.done, std::vector<bool>{false});
    EXPECT_EQ(it.driver.report()->error, test.error);
    EXPECT_EQ(it.driver.report()->reason, test.reason);
  }
}

TEST(CheckpointDriver, ReportsItsFailureToRankZeroUnlessItIsRankZero) {
  for (const int index : {0, 1}) {
    for (const bool copy_fails : {false, true}) {
      SCOPED_TRACE(std::to_string(index) + (copy_fails ? " copy" : " write"));
      Driving it;
      const Error error = copy_fails ? Error{ErrorCode::kUnavailable, "out of memory"} : kNoSpace;
      if (copy_fails) it.compute.fault = error;
      if (!copy_fails) it.checkpointer.write_error = error;
      it.Save({.index = index, .count = 2});
      it.loop.RunFor(kCopyTime + kWriteTime);
      EXPECT_EQ(it.told, index == 0 ? std::vector<std::string>{}
                                    : std::vector<std::string>{"zero: " + error.message});
      EXPECT_EQ(it.done, std::vector<bool>{false});
      EXPECT_FALSE(it.driver.saving());
      EXPECT_FALSE(it.driver.writing());
      EXPECT_EQ(it.driver.report()->error, error.message);
      EXPECT_EQ(it.driver.report()->reason, WriteProblemOf(error));
      EXPECT_EQ(it.looks(), 0);
      EXPECT_EQ(it.loop.pending(), 0U);
    }
  }
}

TEST(CheckpointDriver, ALookThatFailsEndsIt) {
  Driving it;
  it.Save({.index = 0, .count = 2});
  it.loop.RunFor(seconds(1));
  it.checkpointer.look_error = Error{ErrorCode::kDenied, "read-only"};
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.done, std::vector<bool>{false});
  EXPECT_EQ(it.driver.report()->reason, "VolumeReadOnly");
  EXPECT_EQ(it.loop.pending(), 0U);
}

TEST(CheckpointDriver, AFailureIsTriedAgainOutOfTurn) {
  Driving it;
  it.checkpointer.write_error = kNoSpace;
  it.Save({.index = 0, .count = 1});
  it.loop.RunFor(seconds(9));
  EXPECT_FALSE(it.DueOutOfTurn());
  it.loop.RunFor(seconds(2));
  EXPECT_TRUE(it.DueOutOfTurn());
  it.checkpointer.write_error.reset();
  it.Save({.index = 0, .count = 1});
  it.loop.RunFor(seconds(100));
  EXPECT_EQ(it.done, (std::vector<bool>{false, true}));
  EXPECT_FALSE(it.DueOutOfTurn()) << "it is saved";
}

TEST(CheckpointDriver, AFailureKeepsWhatTheLastSuccessWas) {
  Driving it;
  it.Save({.index = 0, .count = 1});
  it.loop.RunFor(seconds(1));
  it.checkpointer.write_error = kNoSpace;
  it.Save({.index = 0, .count = 1}, 9);
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.driver.saved_tick(), 7U);
  EXPECT_EQ(it.driver.report()->step, 5U);
  EXPECT_EQ(it.driver.report()->error, kNoSpace.message);
  it.checkpointer.write_error.reset();
  it.Save({.index = 0, .count = 1}, 10);
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.driver.report()->error, "") << "the error is cleared";
  EXPECT_EQ(it.driver.saved_tick(), 10U);
}

// Its writers may be lost: the remaining ones start another checkpoint at the next boundary.
TEST(CheckpointDriver, ARecoveryAbandonsACheckpointWithMissingSlices) {
  for (const bool recovery : {true, false}) {
    SCOPED_TRACE(recovery);
    Driving it;
    it.Save({.index = 0, .count = 2});
    it.loop.RunFor(seconds(1));
    it.driver.OnEntered(recovery);
    it.loop.RunFor(milliseconds(300));
    EXPECT_EQ(it.driver.saving(), !recovery);
    EXPECT_EQ(it.done.size(), recovery ? 1U : 0U);
    if (!recovery) continue;
    EXPECT_FALSE(it.done.front());
    EXPECT_FALSE(it.driver.report()) << "it did not fail";
    EXPECT_EQ(it.stats.checkpoints_failed, 0U);
    EXPECT_TRUE(it.DueOutOfTurn()) << "it is due at once";
    EXPECT_EQ(it.loop.pending(), 0U);
  }
}

TEST(CheckpointDriver, ARecoveryTakesNothingFromOneThatIsComplete) {
  Driving it;
  it.Save({.index = 0, .count = 2});
  it.loop.RunFor(seconds(1));
  it.checkpointer.slices.insert(1);
  it.driver.OnEntered(/*recovery=*/true);
  it.loop.RunFor(milliseconds(300));
  EXPECT_EQ(it.done, std::vector<bool>{true});
  EXPECT_EQ(it.driver.saved_tick(), 7U);
}

TEST(CheckpointDriver, WaitsForAllCopiesAndWritesAndThenRunsTheNewestTask) {
  Driving it;
  std::vector<std::string> ran;
  it.Save({.index = 0, .count = 2}, 7);
  it.loop.RunFor(milliseconds(5));
  it.Save({.index = 0, .count = 2}, 8);
  it.driver.WhenWritten([&] { ran.emplace_back("first"); });
  it.driver.WhenWritten([&] { ran.emplace_back("second"); });
  it.loop.RunFor(milliseconds(25));
  EXPECT_TRUE(it.driver.writing()) << "the first is written, the second is not yet";
  EXPECT_TRUE(ran.empty());
  it.loop.RunFor(milliseconds(20));
  EXPECT_FALSE(it.driver.writing());
  EXPECT_EQ(ran, std::vector<std::string>{"second"});
  it.Save({.index = 0, .count = 2}, 9);
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(ran.size(), 1U) << "once";
}

TEST(CheckpointDriver, AWriteThatFailsIsOverToo) {
  Driving it;
  bool ran = false;
  it.checkpointer.write_error = kNoSpace;
  it.Save({.index = 1, .count = 2});
  it.driver.WhenWritten([&] { ran = true; });
  it.loop.RunFor(seconds(1));
  EXPECT_TRUE(ran);
}

TEST(CheckpointDriver, HearsNothingOnceTheLearnerHasExited) {
  Driving it;
  it.Save({.index = 0, .count = 1});
  it.tasks.End();
  it.loop.RunFor(seconds(1));
  EXPECT_TRUE(it.done.empty());
}

}  // namespace
}  // namespace pliant
