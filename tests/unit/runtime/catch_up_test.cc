#include "trainer/runtime/catch_up.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/protocol/state_frames.h"
#include "tests/unit/runtime/fake_compute.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Tick kBegan = 10;  // applied ticks of the state that the others send
constexpr Tick kBacklog = 3;
constexpr Duration kStep = milliseconds(10);  // duration of an operation of the program

// A member that catches up from ranks 0 and 2. Its owner takes the next step as the learner does.
struct CatchingUp final : CatchUp::Owner {
  SimEventLoop loop;
  Tasks tasks{loop, [] {}};
  FakeCompute compute{loop};
  std::vector<std::string> told;
  std::vector<double> squares;  // of the applied ticks' gradients
  std::optional<CatchUp> catch_up;

  CatchingUp() {
    compute.time = kStep;
    catch_up.emplace(CatchUp::Parts{.tasks = tasks, .compute = compute, .owner = *this},
                     Position{.has_state = true, .applied_ticks = kBegan, .lineage = {1, 1}},
                     std::vector<int>{0, 2}, kBacklog);
  }

  ~CatchingUp() override { tasks.End(); }

  void OnStateLoaded(const Position& position) override {
    told.push_back("loaded " + std::to_string(position.applied_ticks));
  }
  void OnMissedTickApplied(const MissedTick& tick, const CommitOutput& output, bool last) override {
    told.push_back("applied " + std::to_string(tick.after.applied_ticks) + (last ? " last" : ""));
    squares.push_back(output.gradient_square);
  }
  void OnCatchUpStep() override {
    catch_up->Advance();
    if (!catch_up->ended()) return;
    told.emplace_back("ended");
    catch_up.reset();
  }
  void OnCatchUpFailed(const Error& error) override { told.push_back("failed " + error.message); }

  // The slice that this source sends; its tensors are filled with `value`.
  std::vector<Frame> Slice(int index, float value = 0.5F) {
    StateCopy state = StateCopy::Like(compute.state_shape());
    for (const TensorView& tensor : state.view()) {
      for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(value))
        std::memcpy(&tensor.bytes[at], &value, sizeof(value));
    }
    return StateFrames({1, 2}, kBegan,
                       std::make_shared<const StateCopy>(
                           StateCopy::Of(SliceOf(state.view(), {.index = index, .count = 2}))));
  }
  void TakeSlice(int source, int index) {
    for (const Frame& frame : Slice(index)) ASSERT_TRUE(catch_up->OnState(source, frame));
    catch_up->LoadIfWhole();
  }
  void TakeState() {
    TakeSlice(0, 0);
    TakeSlice(2, 1);
  }
  // The tick after `applied`, with a gradient of 1 everywhere.
  MissedTick Tick(pliant::Tick applied, TickKind kind = TickKind::kTrain) {
    MissedTick tick{.plan = {.kind = kind, .step = applied},
                    .gradient = {},
                    .buffers = {},
                    .sums = {},
                    .evaluation = {},
                    .after = {.has_state = true, .applied_ticks = applied + 1}};
    if (kind == TickKind::kTrain) {
      tick.gradient = FloatBuffer(compute.weights.size());
      std::ranges::fill(tick.gradient.view(), 1.0F);
    }
    return tick;
  }
  MissedTick EndOfEvaluation(pliant::Tick applied) {
    MissedTick tick = Tick(applied, TickKind::kEvaluate);
    tick.evaluation = EvaluationTask{.epoch = 4};
    return tick;
  }
};
using Told = std::vector<std::string>;

TEST(CatchUp, LoadsTheStateOnceAllSlicesAreThere) {
  CatchingUp it;
  EXPECT_TRUE(it.catch_up->wants_state());
  it.TakeSlice(2, 1);
  EXPECT_TRUE(it.compute.asked.empty());
  EXPECT_TRUE(it.catch_up->wants_state());
  it.TakeSlice(0, 0);
  EXPECT_EQ(it.compute.asked, Told{"load"});
  EXPECT_FALSE(it.catch_up->wants_state()) << "it has the whole state";
  EXPECT_TRUE(it.catch_up->busy());
  EXPECT_FALSE(it.catch_up->up_to_date());
  it.loop.RunFor(kStep);
  EXPECT_EQ(it.told, Told{"loaded 10"});
  EXPECT_EQ(it.compute.weights.front(), 0.5F);
  EXPECT_EQ(it.compute.bias.front(), 0.5F);
  EXPECT_EQ(it.compute.momentum.front(), 0.5F);
  EXPECT_FALSE(it.catch_up->wants_state());
  EXPECT_TRUE(it.catch_up->up_to_date()) << "no tick was completed in the meantime";
}

TEST(CatchUp, TakesNothingThatASourceHasNotToSend) {
  CatchingUp it;
  const std::vector<Frame> frames = it.Slice(0);
  EXPECT_FALSE(it.catch_up->OnState(1, frames.front())) << "a rank that catches up, too";
  EXPECT_FALSE(it.catch_up->OnState(0, frames.back())) << "the end before the rest";
  EXPECT_TRUE(it.catch_up->OnState(0, frames.front()));
}

TEST(CatchUp, AppliesWhatWasMissedInItsOrderOneAfterTheOther) {
  CatchingUp it;
  it.catch_up->OnCompleted(it.Tick(10));
  it.catch_up->Advance();
  EXPECT_TRUE(it.compute.asked.empty()) << "not without a state";
  it.catch_up->OnCompleted(it.Tick(11, TickKind::kEvaluate));
  it.catch_up->OnCompleted(it.EndOfEvaluation(12));
  it.TakeState();
  it.catch_up->Advance();
  EXPECT_EQ(it.compute.asked, Told{"load"}) << "it is still loading";
  it.loop.RunFor(2 * kStep);
  EXPECT_EQ(it.told, (Told{"loaded 10", "applied 11", "applied 12"}))
      << "the slice of an evaluation only sums up";
  EXPECT_FALSE(it.catch_up->up_to_date());
  it.loop.RunFor(kStep);
  EXPECT_EQ(it.compute.done, (Told{"load", "commit 10", "evaluated 4"}));
  EXPECT_TRUE(it.catch_up->up_to_date());
  it.catch_up->OnCompleted(it.Tick(13));
  EXPECT_FALSE(it.catch_up->up_to_date());
  it.catch_up->Advance();
  it.loop.RunFor(kStep);
  EXPECT_EQ(it.told.back(), "applied 14");
  EXPECT_EQ(it.compute.weights.front(), 2.5F) << "both gradients";
}

TEST(CatchUp, MeasuresTheStepsThatAllMeasure) {
  CatchingUp it;
  it.compute.gradient_square = 7;
  it.TakeState();
  it.catch_up->OnCompleted(it.Tick(15));
  it.catch_up->OnCompleted(it.Tick(16));
  it.catch_up->OnCompleted(it.EndOfEvaluation(17));
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.squares, (std::vector<double>{0, 7, 0}));
}

TEST(CatchUp, IsInSyncAfterTheTickThatTheOthersCompletedLast) {
  CatchingUp it;
  it.TakeState();
  it.catch_up->OnCompleted(it.Tick(10));
  EXPECT_FALSE(it.catch_up->coming_in_sync());
  it.catch_up->OnCompleted(it.Tick(11), TickOutcome{.came_in_sync = {1}});
  EXPECT_TRUE(it.catch_up->coming_in_sync());
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.told, (Told{"loaded 10", "applied 11", "applied 12 last"}));
  EXPECT_TRUE(it.catch_up->up_to_date());
  EXPECT_EQ(it.catch_up->last()->came_in_sync, std::vector<int>{1});
}

TEST(CatchUp, TheLastTickMayBeOneThatOnlySumsUp) {
  CatchingUp it;
  it.TakeState();
  it.loop.RunFor(kStep);
  it.catch_up->OnCompleted(it.Tick(10, TickKind::kEvaluate), TickOutcome{});
  it.catch_up->Advance();
  EXPECT_EQ(it.told.back(), "applied 11 last");
  EXPECT_TRUE(it.catch_up->up_to_date());
}

// ---- Reports to the others ----

using Report = CatchUp::Report;

TEST(CatchUp, ReportsHowFarTheOthersAreWhileTheStateIsOnItsWay) {
  CatchingUp it;
  EXPECT_EQ(it.catch_up->NextReport(10), (Report{.applied = 10}));
  EXPECT_EQ(it.catch_up->NextReport(10), std::nullopt) << "no news";
  it.catch_up->OnCompleted(it.Tick(10));
  EXPECT_EQ(it.catch_up->NextReport(11), (Report{.applied = 11}));
}

TEST(CatchUp, SaysNothingWhileTooManyTicksWait) {
  CatchingUp it;
  for (Tick tick = 10; tick < 10 + kBacklog - 1; ++tick) it.catch_up->OnCompleted(it.Tick(tick));
  EXPECT_EQ(it.catch_up->NextReport(12), (Report{.applied = 12}));
  it.catch_up->OnCompleted(it.Tick(12));
  EXPECT_EQ(it.catch_up->NextReport(13), std::nullopt) << "so that the others wait";
  it.TakeState();
  it.loop.RunFor(kStep);
  EXPECT_EQ(it.catch_up->NextReport(13), (Report{.applied = 13})) << "applying one has begun";
}

TEST(CatchUp, IsInSyncWhenAtMostOneTickIsToBeApplied) {
  CatchingUp it;
  for (const Tick tick : {10, 11}) it.catch_up->OnCompleted(it.Tick(tick));
  it.TakeState();
  EXPECT_EQ(it.catch_up->NextReport(12), (Report{.applied = 12})) << "the state is not loaded";
  it.loop.RunFor(kStep);
  EXPECT_EQ(it.catch_up->NextReport(12), std::nullopt) << "two ticks behind";
  it.loop.RunFor(kStep);
  EXPECT_EQ(it.catch_up->NextReport(12), (Report{.applied = 12, .in_sync = true}))
      << "one is being applied";
  for (const Tick tick : {12, 13}) it.catch_up->OnCompleted(it.Tick(tick));
  EXPECT_EQ(it.catch_up->NextReport(14), (Report{.applied = 14, .in_sync = true}))
      << "a report is not taken back";
}

TEST(CatchUp, SaysNothingMoreOnceAllKnowThatItIsComingInSync) {
  CatchingUp it;
  it.TakeState();
  it.loop.RunFor(kStep);
  it.catch_up->OnCompleted(it.Tick(10), TickOutcome{});
  EXPECT_EQ(it.catch_up->NextReport(10), std::nullopt);
}

// ---- The membership ends ----

TEST(CatchUp, WaitsForWhatTheProgramIsAtWhenItEnds) {
  const struct {
    const char* name;
    Duration when;  // after the state arrived
    Told want;
    std::size_t commits;
  } kCases[] = {
      {"while it loads", kStep / 2, {"loaded 10", "ended"}, 0},
      {"while it commits", kStep + kStep / 2, {"loaded 10", "applied 11", "ended"}, 1},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    CatchingUp it;
    for (const Tick tick : {10, 11}) it.catch_up->OnCompleted(it.Tick(tick));
    it.TakeState();
    it.loop.RunFor(test.when);
    it.catch_up->End();
    ASSERT_TRUE(it.catch_up->busy());
    EXPECT_TRUE(it.catch_up->ended());
    EXPECT_FALSE(it.catch_up->wants_state());
    it.catch_up->OnCompleted(it.Tick(12));
    it.catch_up->Advance();
    it.loop.RunFor(seconds(1));
    EXPECT_EQ(it.told, test.want);
    EXPECT_EQ(it.compute.asked.size(), 1 + test.commits) << "nothing more is begun";
  }
}

TEST(CatchUp, EndsAtOnceWhenTheProgramIsAtNothing) {
  CatchingUp it;
  it.catch_up->End();
  EXPECT_FALSE(it.catch_up->busy());
  EXPECT_FALSE(it.catch_up->wants_state());
  it.loop.RunFor(seconds(1));
  EXPECT_TRUE(it.told.empty());
}

TEST(CatchUp, TellsOfAProgramThatFails) {
  for (const bool load_fails : {true, false}) {
    SCOPED_TRACE(load_fails ? "load" : "commit");
    CatchingUp it;
    for (const Tick tick : {10, 11}) it.catch_up->OnCompleted(it.Tick(tick));
    it.TakeState();
    if (!load_fails) it.loop.RunFor(kStep);
    it.compute.fault = Error{ErrorCode::kInternal, "out of memory"};
    it.loop.RunFor(seconds(1));
    EXPECT_EQ(it.told.back(), "failed out of memory");
    EXPECT_EQ(it.told.size(), load_fails ? 1U : 2U) << "nothing after the failure is reported";
    EXPECT_EQ(it.compute.asked.size(), load_fails ? 1U : 2U);
  }
}

}  // namespace
}  // namespace pliant
