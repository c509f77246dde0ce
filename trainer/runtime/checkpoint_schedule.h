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
  std::set<Tick> at;              // also after these numbers of ticks
};

// Decides when a checkpoint is due. Every member has one, because any of them may be rank 0 next.
class CheckpointSchedule {
 public:
  explicit CheckpointSchedule(CheckpointPolicy policy) : policy_(std::move(policy)) {}

  // The learner has entered a membership. Only the first one starts the timer: if each did,
  // frequent changes would prevent checkpoints.
  void OnEntered(TimePoint now);

  // Whether one is due after the tick of `plan`, with `ticks` ticks applied. `saving`: a save is
  // running.
  bool Due(const TickPlan& plan, Tick ticks, bool saving, TimePoint now) const;

  void OnBegun(TimePoint now) { last_ = now; }  // also if other members write it
  void OnSaved();
  void OnFailed(TimePoint now);  // the next try is due after a growing pause
  // The save was aborted with its membership, not because of a write error.
  void OnSuperseded(TimePoint now) { again_at_ = now; }

 private:
  const CheckpointPolicy policy_;
  std::optional<TimePoint> last_;
  // After a failure: when to try again, unless the next checkpoint is due earlier.
  std::optional<TimePoint> again_at_;
  Backoff backoff_{{.first = std::chrono::seconds(10), .most = std::chrono::minutes(5)}};
};

}  // namespace pliant
