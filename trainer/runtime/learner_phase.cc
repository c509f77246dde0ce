#include "trainer/runtime/learner_phase.h"

#include <algorithm>
#include <array>

namespace pliant {
namespace {

using Phase = LearnerPhase;
using Stage = Training::Stage;

// A learner has these parts in a phase.
struct Rule {
  Phase phase;
  bool opens = false;
  bool no_stage = true;                       // whether it may have no Training
  std::optional<Stage> stage = std::nullopt;  // of the Training that it may have
  std::optional<bool> in_carrier = false;     // none: either
};

constexpr std::array kRules = {
    Rule{.phase = Phase::kStarting},
    Rule{.phase = Phase::kIdle, .stage = Stage::kOver},
    Rule{.phase = Phase::kOpening, .opens = true},
    Rule{.phase = Phase::kTicking, .no_stage = false, .stage = Stage::kTicking, .in_carrier = true},
    Rule{.phase = Phase::kStopped, .stage = Stage::kOver},
    Rule{.phase = Phase::kReleased, .no_stage = false, .stage = Stage::kOver},
    // All leave by the votes of a tick, or by an empty membership, for which it has left this one.
    Rule{.phase = Phase::kDraining,
         .no_stage = false,
         .stage = Stage::kOver,
         .in_carrier = std::nullopt},
    Rule{.phase = Phase::kFinishing,
         .no_stage = false,
         .stage = Stage::kFinishing,
         .in_carrier = true},
};

}  // namespace

const char* BrokenRule(const LearnerStanding& standing) {
  const auto* const rule = std::ranges::find(kRules, standing.phase, &Rule::phase);
  if (rule == kRules.end()) return nullptr;  // it has exited
  if (standing.opens != rule->opens) return "an opening runs in the phase of opening only";
  if (standing.stage ? standing.stage != rule->stage : !rule->no_stage)
    return "the stage of the training is that of the phase";
  // An entry that waits for an aborted tick leaves the communicator first, which limits the wait.
  const bool entered = rule->in_carrier.value_or(standing.in_carrier);
  if (standing.in_carrier != entered && !(entered && standing.entry_put_off))
    return "the carrier is in the membership from the first tick to the last";
  if (standing.lost != (standing.phase == Phase::kStopped))
    return "a learner repeats why it stopped while it is stopped";
  if (standing.entry_put_off && !standing.changing)
    return "an entry is put off only while the program's state changes";
  if (standing.loss_put_off && standing.phase == Phase::kTicking && !standing.committing)
    return "a loss is put off only during a commit";
  return nullptr;
}

}  // namespace pliant
