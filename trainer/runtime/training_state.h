#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/event_loop.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/metrics.h"
#include "trainer/protocol/position.h"
#include "trainer/protocol/tick_round.h"
#include "trainer/runtime/compute.h"

namespace pliant {

// The progress of a learner's training, across memberships.
struct TrainingState {
  explicit TrainingState(Schedule of_job) : schedule(std::move(of_job)) {}

  Schedule schedule;  // with the group's segments
  Position own;       // where the program's state stands
  Position group;     // where the membership's ticks stand: ahead of `own` during catch-up
  // The applied ticks after which the program wants to stop, if it does. During catch-up this
  // becomes known with the state.
  std::optional<Tick> ended_at;
  bool checkpoint_wished = false;   // by the program, of this state or a later one
  std::optional<std::string> best;  // the program's text, if its state has the best model so far
  MetricsAccumulator metrics;       // over the group's ticks
  Tick max_applied = 0;             // the highest applied() so far
  std::optional<TimePoint> last_commit;

  // The program's state stands at `position`, and the next tick follows it.
  void MoveTo(const Position& position) {
    own = position;
    MoveGroupTo(position);
  }
  // The membership's ticks stand there. Its segments are those of a schedule of this job.
  void MoveGroupTo(const Position& position);
  // A tick of the membership is complete.
  void AdvanceGroup(const TickPlan& plan, const TickOutcome& outcome);
  // Moves a position by that tick.
  void Advance(Position& position, const TickPlan& plan, const TickOutcome& outcome) const;
  // Records whether the program wants to stop. Its state is that after `ticks` ticks.
  void RecordStopRequest(const Compute& compute, Tick ticks) {
    ended_at = compute.wishes().end ? std::optional(ticks) : std::nullopt;
  }
  // Whether the membership's first learner now writes the checkpoint that the program wishes for.
  // `saving`: another one is being written, and the wish waits.
  bool TakeCheckpointWish(bool first, bool saving) {
    return !(first && saving) && std::exchange(checkpoint_wished, false) && first;
  }
  Tick applied() const { return group.applied_ticks; }
  std::uint64_t step() const { return schedule.StepsBefore(own.applied_ticks); }
  bool at_the_end() const { return applied() == schedule.total_ticks() || applied() == ended_at; }
  bool done() const { return own.has_state && at_the_end(); }  // not valid during catch-up

 private:
  void UseSegments();
};

// Adds a step to the noise, if it is measured. That of a program which weighs is not: it would be
// the noise of samples, not of what the program weighs by.
void AddNoise(NoiseWindow& noise, const TickPlan& plan, const ShardSums& sums,
              const ShardSpread& spread, const CommitOutput& output);

}  // namespace pliant
