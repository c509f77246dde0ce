#include "trainer/runtime/learner_phase.h"

#include <array>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace pliant {
namespace {

using Phase = LearnerPhase;
using Stage = Training::Stage;

// A learner in each phase, with what it usually has there.
constexpr std::array kUsual = {
    LearnerStanding{.phase = Phase::kStarting},
    LearnerStanding{.phase = Phase::kIdle},
    LearnerStanding{.phase = Phase::kOpening, .opens = true},
    LearnerStanding{.phase = Phase::kTicking, .stage = Stage::kTicking, .in_carrier = true},
    LearnerStanding{.phase = Phase::kStopped, .stage = Stage::kOver, .lost = true},
    LearnerStanding{.phase = Phase::kReleased, .stage = Stage::kOver},
    LearnerStanding{.phase = Phase::kDraining, .stage = Stage::kOver, .in_carrier = true},
    LearnerStanding{.phase = Phase::kFinishing, .stage = Stage::kFinishing, .in_carrier = true},
};

bool Holds(const LearnerStanding& standing) { return BrokenRule(standing) == nullptr; }

TEST(LearnerPhase, EachPhaseHasWhatTheTableSays) {
  for (const LearnerStanding& usual : kUsual) {
    SCOPED_TRACE(static_cast<int>(usual.phase));
    EXPECT_TRUE(Holds(usual)) << BrokenRule(usual);
    LearnerStanding other = usual;
    other.opens = !usual.opens;
    EXPECT_FALSE(Holds(other)) << "an opening";
    other = usual;
    other.in_carrier = !usual.in_carrier;
    EXPECT_EQ(Holds(other), usual.phase == Phase::kDraining) << "a carrier";
    other = usual;
    other.lost = !usual.lost;
    EXPECT_FALSE(Holds(other)) << "a loss";
    for (const Stage stage : {Stage::kTicking, Stage::kFinishing, Stage::kOver}) {
      other = usual;
      other.stage = stage;
      const bool left_earlier = usual.phase == Phase::kIdle && stage == Stage::kOver;
      EXPECT_EQ(Holds(other), usual.stage == stage || left_earlier);
    }
  }
}

TEST(LearnerPhase, ATrainingIsMissingOnlyWhereNoneBegan) {
  for (LearnerStanding standing : kUsual) {
    SCOPED_TRACE(static_cast<int>(standing.phase));
    standing.stage.reset();
    const bool needed = standing.phase == Phase::kTicking || standing.phase == Phase::kReleased ||
                        standing.phase == Phase::kDraining || standing.phase == Phase::kFinishing;
    EXPECT_EQ(Holds(standing), !needed);
  }
}

TEST(LearnerPhase, NothingIsPutOffWithoutAnEndInSight) {
  LearnerStanding ticking = kUsual[3];
  ticking.entry_put_off = true;
  EXPECT_STREQ(BrokenRule(ticking), "an entry is put off only while the program's state changes");
  ticking.changing = true;
  EXPECT_TRUE(Holds(ticking));
  ticking.in_carrier = false;
  EXPECT_TRUE(Holds(ticking)) << "the communicator ends first";
  ticking = kUsual[3];
  ticking.loss_put_off = true;
  EXPECT_STREQ(BrokenRule(ticking), "a loss is put off only during a commit");
  ticking.committing = ticking.changing = true;
  EXPECT_TRUE(Holds(ticking));
}

TEST(LearnerPhase, NothingHoldsAfterTheExit) {
  EXPECT_TRUE(Holds({.phase = Phase::kExited, .opens = true, .lost = true, .entry_put_off = true}));
}

}  // namespace
}  // namespace pliant
