#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/position.h"
#include "trainer/protocol/state_transfer.h"
#include "trainer/protocol/tick_round.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// A tick that the members in sync have completed.
struct MissedTick {
  TickPlan plan;
  FloatBuffer gradient;
  Bytes buffers;
  ShardSums sums;
  ShardSpread spread;                        // if it is measured
  std::optional<EvaluationTask> evaluation;  // ended by this tick, if the program wants its result
  Position after;
};

// How many ticks the others may be ahead of a member that catches up. `backlog_bytes`: its memory
// for gradients.
inline Tick MaxBacklog(std::size_t backlog_bytes, std::uint64_t gradient_elements) {
  return std::clamp<Tick>(backlog_bytes / std::max<std::uint64_t>(gradient_elements * 4, 1), 4, 64);
}

// The catch-up of a member that lacks its membership's state. It receives the state from the
// members that hold it, one slice from each, and applies the ticks that they have completed since
// then. Lives until the member is in sync, or the membership ends. A running call to the program
// calls back into it: it must not be destroyed while busy(), unless the tasks have ended.
class CatchUp {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnStateLoaded(const Position& position) = 0;
    // The tick was applied to the program's state, or to the sums that belong to it. `last`: the
    // member is in sync after it.
    virtual void OnMissedTickApplied(const MissedTick& tick, const CommitOutput& output,
                                     bool last) = 0;
    // The program has ended its call. The owner decides what follows, and may destroy this.
    virtual void OnCatchUpStep() = 0;
    virtual void OnCatchUpFailed(const Error& error) = 0;
  };
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    Owner& owner;
  };
  // How far this member has caught up, for the others.
  struct Report {
    Tick applied = 0;  // ticks applied by the members in sync
    bool in_sync = false;
    bool operator==(const Report&) const = default;
  };

  // `from`: position of the state that `sources` (ranks) send. While `max_backlog` ticks wait here
  // to be applied, nothing is reported, so that the others wait.
  CatchUp(Parts parts, Position from, const std::vector<int>& sources, Tick max_backlog);
  ~CatchUp();

  // Handles a kState frame. kInvalid: not what the source should send.
  Status OnState(int source, const Frame& frame) { return state_.OnFrame(source, frame); }
  void LoadIfWhole();
  bool wants_state() const { return !ended_ && !loaded_ && !busy_; }

  // `last`: set for the tick after which this member is in sync; the outcome of that tick.
  void OnCompleted(MissedTick tick, std::optional<TickOutcome> last = std::nullopt) {
    backlog_.push_back(std::move(tick));
    last_ = std::move(last);
  }
  bool coming_in_sync() const { return last_.has_value(); }
  const std::optional<TickOutcome>& last() const { return last_; }

  // Has the program apply the next tick, if that is possible now.
  void Advance();
  // All completed ticks are applied.
  bool up_to_date() const { return loaded_ && !busy_ && backlog_.empty(); }
  // The report to send when the members in sync have applied `applied` ticks; none if nothing has
  // changed. It is recorded as sent.
  std::optional<Report> NextReport(Tick applied);

  // Begins no further calls to the program. When the running one ends, OnCatchUpStep is called.
  void End();
  bool busy() const { return busy_; }
  bool ended() const { return ended_; }

 private:
  const Parts parts_;
  const Position from_;
  const Tick max_backlog_;
  SlicedStateReceiver state_;
  bool loaded_ = false;
  bool busy_ = false;  // a call to the program is running
  bool ended_ = false;
  std::deque<MissedTick> backlog_;
  std::optional<TickOutcome> last_;
  Report last_reported_;
};

}  // namespace pliant
