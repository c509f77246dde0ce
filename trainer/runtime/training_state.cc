#include "trainer/runtime/training_state.h"

#include "base/check.h"
#include "trainer/data/batch_rule.h"

namespace pliant {

void TrainingState::MoveGroupTo(const Position& position) {
  group = position;
  metrics.Restart(position.evaluation);
  UseSegments();
}

void TrainingState::AdvanceGroup(const TickPlan& plan, const TickOutcome& outcome) {
  Advance(group, plan, outcome);
  UseSegments();
}

void TrainingState::Advance(Position& position, const TickPlan& plan,
                            const TickOutcome& outcome) const {
  ++position.applied_ticks;
  if (!outcome.doublings || !plan.last_of_epoch) return;
  if (position.applied_ticks == schedule.total_ticks()) return;
  Append(position.batches, schedule.spec(), plan.epoch + 1, *outcome.doublings);
}

void TrainingState::UseSegments() {
  if (schedule.segments() == group.batches) return;
  Result<Schedule> with = schedule.With(group.batches);
  CHECK(with, "segments are checked where they come from");
  schedule = *std::move(with);
}

void AddNoise(NoiseWindow& noise, const TickPlan& plan, const ShardSums& sums,
              const ShardSpread& spread, const CommitOutput& output) {
  if (IsMeasured(plan) && !sums.weight) noise.Add(spread, plan.samples, output.gradient_square);
}

}  // namespace pliant
