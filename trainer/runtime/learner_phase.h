#pragma once

#include <cstdint>
#include <optional>

#include "trainer/runtime/training.h"

namespace pliant {

// Where a learner is between its start and its exit: docs/decisions/membership-change.md.
enum class LearnerPhase : std::uint8_t {
  kStarting,   // looks for a final model
  kIdle,       // takes part in nothing
  kOpening,    // has entered a membership
  kTicking,    // all its members hold the state
  kStopped,    // aborted its membership; waits for another
  kReleased,   // not in the next membership; may still be called back
  kDraining,   // all members leave: checkpoint, then exit
  kFinishing,  // all ticks are applied: publishes the final model, or waits for it
  kExited,
};

// Whether the learner is a member of a membership that opens or trains.
inline bool IsMember(LearnerPhase phase) {
  return phase == LearnerPhase::kOpening || phase == LearnerPhase::kTicking;
}

// A learner between two events: all that a change of its membership moves.
struct LearnerStanding {
  LearnerPhase phase = LearnerPhase::kStarting;
  bool opens = false;                    // an OpeningRun is there
  std::optional<Training::Stage> stage;  // of its Training; none: there is none
  bool in_carrier = false;               // its Carrier has entered the membership
  bool lost = false;                     // it repeats to the coordinator why it stopped
  // The program's state changes: by a commit, a load, a tick that is being aborted, or catch-up.
  bool changing = false;
  bool committing = false;
  bool entry_put_off = false;  // MembershipView::entry_put_off
  bool loss_put_off = false;
};

// The first rule that does not hold, as a sentence; nullptr: all rules hold.
const char* BrokenRule(const LearnerStanding& standing);

}  // namespace pliant
