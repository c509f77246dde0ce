#pragma once

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
  std::optional<EvaluationTask> evaluation;  // that it ended, if the program hears of it
  Position after;
};

// A member without the state of its membership: takes the state from those that have it, each a
// slice, and applies the ticks that they have completed since then. Lives until it is in sync, or
// the membership ends. What the program is at calls back into it: it is not destroyed while it is
// busy(), unless the tasks have ended.
class CatchUp {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnStateLoaded(const Position& position) = 0;
    // Of the program's state, or of the sums that belong to it. `last`: it is in sync after this.
    virtual void OnMissedTickApplied(const MissedTick& tick, bool last) = 0;
    // The program is done with what it was asked to do: the next step is the owner's, which may
    // destroy this.
    virtual void OnCatchUpStep() = 0;
    virtual void OnCatchUpFailed(const Error& error) = 0;
  };
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    Owner& owner;
  };
  // What the others are to hear: it has caught up to here.
  struct Report {
    Tick applied = 0;  // by the members in sync
    bool in_sync = false;
    bool operator==(const Report&) const = default;
  };

  // `from`: where the state stands that comes from `sources`, by rank. While `max_backlog` ticks
  // wait here for it, it says nothing, so that the others wait.
  CatchUp(Parts parts, Position from, const std::vector<int>& sources, Tick max_backlog);
  ~CatchUp();

  // Of a kState frame. kInvalid: not what the source has to send.
  Status OnState(int source, const Frame& frame) { return state_.OnFrame(source, frame); }
  void LoadIfWhole();
  bool wants_state() const { return !ended_ && !loaded_ && !busy_; }

  // `last`, of a tick after which it is in sync: what came of that.
  void OnCompleted(MissedTick tick, std::optional<TickOutcome> last = std::nullopt) {
    backlog_.push_back(std::move(tick));
    last_ = std::move(last);
  }
  bool coming_in_sync() const { return last_.has_value(); }
  const std::optional<TickOutcome>& last() const { return last_; }

  // Has the program do what can be done.
  void Advance();
  // It has applied all that was completed.
  bool up_to_date() const { return loaded_ && !busy_ && backlog_.empty(); }
  // News for the others after so many ticks of theirs, if there are any. Counts as told.
  std::optional<Report> NextReport(Tick applied);

  // Nothing is begun any more. What the program is at is waited for: then OnCatchUpStep comes.
  void End();
  bool busy() const { return busy_; }
  bool ended() const { return ended_; }

 private:
  const Parts parts_;
  const Position from_;
  const Tick max_backlog_;
  SlicedStateReceiver state_;
  bool loaded_ = false;
  bool busy_ = false;  // the program is at something
  bool ended_ = false;
  std::deque<MissedTick> backlog_;
  std::optional<TickOutcome> last_;
  Report last_reported_;
};

}  // namespace pliant
