#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "trainer/data/schedule.h"

namespace pliant {

struct CheckpointPolicy {
  std::uint64_t every_steps = 0;  // 0: not by steps
  Duration every{};               // zero: not by time
  std::set<Tick> at;              // besides, after so many ticks
};

// When a checkpoint is due. Every member keeps one, because any of them may be rank 0 next.
class CheckpointSchedule {
 public:
  explicit CheckpointSchedule(CheckpointPolicy policy) : policy_(std::move(policy)) {}

  // The learner has entered a membership. Time counts from the first one: where memberships change
  // often, none would last until a checkpoint is due.
  void OnEntered(TimePoint now);

  // After the tick of `plan`, when `ticks` are applied. `saving`: one is under way.
  bool Due(const TickPlan& plan, Tick ticks, bool saving, TimePoint now) const;

  void OnBegun(TimePoint now) { last_ = now; }  // whoever writes it
  void OnSaved();
  void OnFailed(TimePoint now);  // the next try is due after a growing pause
  // Given up with its membership, and not because it could not be written.
  void OnSuperseded(TimePoint now) { again_at_ = now; }

 private:
  const CheckpointPolicy policy_;
  std::optional<TimePoint> last_;
  // After a failure: before the next one is due, if that is far away.
  std::optional<TimePoint> again_at_;
  Backoff backoff_{{.first = std::chrono::seconds(10), .most = std::chrono::minutes(5)}};
};

}  // namespace pliant
