#include "trainer/runtime/checkpoint_schedule.h"

namespace pliant {

void CheckpointSchedule::OnEntered(TimePoint now) {
  if (!last_) last_ = now;
}

bool CheckpointSchedule::Due(const TickPlan& plan, Tick ticks, bool saving, TimePoint now) const {
  // These are always due, even while another save is running.
  if (policy_.at.contains(ticks)) return true;
  if (plan.kind != TickKind::kTrain || saving) return false;
  if (again_at_ && now >= *again_at_) return true;
  if (policy_.every_steps > 0 && (plan.step + 1) % policy_.every_steps == 0) return true;
  return policy_.every > Duration::zero() && last_ && now - *last_ >= policy_.every;
}

void CheckpointSchedule::OnSaved() {
  again_at_.reset();
  backoff_.Reset();
}

void CheckpointSchedule::OnFailed(TimePoint now) { again_at_ = now + backoff_.Next(0); }

}  // namespace pliant
