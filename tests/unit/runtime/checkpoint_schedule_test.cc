#include "trainer/runtime/checkpoint_schedule.h"

#include <chrono>
#include <cstdint>
#include <functional>

#include <gtest/gtest.h>

namespace pliant {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TimePoint Minute(int minute) { return TimePoint() + minutes(minute); }
TimePoint Second(int second) { return TimePoint() + seconds(second); }
// The tick of the optimizer step after `steps` steps.
TickPlan StepAfter(std::uint64_t steps) { return {.kind = TickKind::kTrain, .step = steps}; }
TickPlan SliceOfEvaluation(std::uint64_t steps) {
  return {.kind = TickKind::kEvaluate, .step = steps};
}

TEST(CheckpointSchedule, TellsWhenACheckpointIsDue) {
  const CheckpointPolicy kNever;
  const CheckpointPolicy kBySteps{.every_steps = 10};
  const CheckpointPolicy kByTime{.every = minutes(5)};
  const CheckpointPolicy kAtTicks{.at = {7, 12}};
  const auto nothing = [](CheckpointSchedule&) {};
  const auto entered = [](CheckpointSchedule& schedule) { schedule.OnEntered(Minute(0)); };
  const auto begun_at_3 = [](CheckpointSchedule& schedule) {
    schedule.OnEntered(Minute(0));
    schedule.OnBegun(Minute(3));
  };
  const struct {
    const char* name;
    CheckpointPolicy policy;
    std::function<void(CheckpointSchedule&)> before;
    TickPlan plan;
    Tick ticks;
    bool saving;
    TimePoint now;
    bool want;
  } kCases[] = {
      {"never", kNever, entered, StepAfter(9), 10, false, Minute(999), false},
      {"a step before it", kBySteps, entered, StepAfter(8), 9, false, Minute(0), false},
      {"at the step", kBySteps, entered, StepAfter(9), 10, false, Minute(0), true},
      {"a step after it", kBySteps, entered, StepAfter(10), 11, false, Minute(0), false},
      {"steps count, not ticks", kBySteps, entered, StepAfter(9), 13, false, Minute(0), true},
      {"an evaluation is no step", kBySteps, entered, SliceOfEvaluation(9), 10, false, Minute(0),
       false},
      {"one at a time", kBySteps, entered, StepAfter(9), 10, true, Minute(0), false},
      {"not yet", kByTime, entered, StepAfter(3), 4, false, Minute(5) - seconds(1), false},
      {"in time", kByTime, entered, StepAfter(3), 4, false, Minute(5), true},
      {"after training only", kByTime, entered, SliceOfEvaluation(3), 4, false, Minute(9), false},
      {"in time, but one is under way", kByTime, entered, StepAfter(3), 4, true, Minute(9), false},
      {"before any membership", kByTime, nothing, StepAfter(3), 4, false, Minute(99), false},
      {"since the one before began", kByTime, begun_at_3, StepAfter(3), 4, false, Minute(7), false},
      {"again", kByTime, begun_at_3, StepAfter(3), 4, false, Minute(8), true},
      {"at a tick", kAtTicks, entered, StepAfter(3), 7, false, Minute(0), true},
      {"at another", kAtTicks, entered, StepAfter(3), 12, false, Minute(0), true},
      {"between them", kAtTicks, entered, StepAfter(3), 8, false, Minute(0), false},
      {"also while one is under way", kAtTicks, entered, StepAfter(3), 7, true, Minute(0), true},
      {"also of an evaluation", kAtTicks, entered, SliceOfEvaluation(3), 7, false, Minute(0), true},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    CheckpointSchedule schedule(test.policy);
    test.before(schedule);
    EXPECT_EQ(schedule.Due(test.plan, test.ticks, test.saving, test.now), test.want);
  }
}

TEST(CheckpointSchedule, TimeCountsFromTheFirstMembership) {
  CheckpointSchedule schedule({.every = minutes(5)});
  schedule.OnEntered(Minute(0));
  for (const int minute : {1, 2, 3, 4}) schedule.OnEntered(Minute(minute));
  EXPECT_TRUE(schedule.Due(StepAfter(1), 2, false, Minute(5)));
}

// Expects that `second` is the first second at which a checkpoint is due.
void ExpectDueFrom(const CheckpointSchedule& schedule, int second) {
  EXPECT_FALSE(schedule.Due(StepAfter(0), 1, false, Second(second) - Duration(1)));
  EXPECT_TRUE(schedule.Due(StepAfter(0), 1, false, Second(second)));
}

TEST(CheckpointSchedule, AFailureIsTriedAgainAfterAGrowingPause) {
  CheckpointSchedule schedule({.every_steps = 1'000'000});
  schedule.OnEntered(Second(0));
  int now = 0;
  for (const int pause : {10, 20, 40, 80, 160, 300, 300}) {
    schedule.OnBegun(Second(now));
    schedule.OnFailed(Second(now));
    SCOPED_TRACE(pause);
    ExpectDueFrom(schedule, now + pause);
    EXPECT_FALSE(schedule.Due(SliceOfEvaluation(0), 1, false, Second(now + pause)));
    EXPECT_FALSE(schedule.Due(StepAfter(0), 1, /*saving=*/true, Second(now + pause)));
    now += pause;
  }
  schedule.OnSaved();
  EXPECT_FALSE(schedule.Due(StepAfter(0), 1, false, Second(now + 9999)));
  schedule.OnFailed(Second(now));
  ExpectDueFrom(schedule, now + 10);
}

TEST(CheckpointSchedule, OneThatItsMembershipTookAlongIsDueAtOnceAndNoFailure) {
  CheckpointSchedule schedule({.every_steps = 1'000'000});
  schedule.OnEntered(Second(0));
  schedule.OnSuperseded(Second(5));
  ExpectDueFrom(schedule, 5);
  schedule.OnFailed(Second(6));
  ExpectDueFrom(schedule, 16);
}

}  // namespace
}  // namespace pliant
