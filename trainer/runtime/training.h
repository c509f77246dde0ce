#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/catch_up_progress.h"
#include "trainer/protocol/membership_view.h"
#include "trainer/protocol/metrics.h"
#include "trainer/protocol/opening.h"
#include "trainer/protocol/position.h"
#include "trainer/protocol/state_server.h"
#include "trainer/protocol/team.h"
#include "trainer/runtime/catch_up.h"
#include "trainer/runtime/coordinator_session.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/tick_runner.h"

namespace pliant {

// Where a learner's training stands, from one membership to the next.
struct TrainingState {
  explicit TrainingState(const Schedule& of_job) : schedule(of_job) {}

  const Schedule& schedule;  // borrowed
  Position own;              // of the program's state
  Position group;  // of the membership's ticks: ahead of `own` while this learner catches up
  // After how many ticks the program wants no more. One that catches up learns of it with the
  // state.
  std::optional<Tick> ended_at;
  MetricsAccumulator metrics;  // of the group's ticks
  Tick max_applied = 0;        // that this learner ever had
  std::optional<TimePoint> last_commit;

  // The program's state is of `position`, and so is what comes next.
  void MoveTo(const Position& position) {
    own = group = position;
    metrics.Restart(position.evaluation);
  }
  // Whether the program wants no more, whose state after so many ticks is there.
  void RecordStopRequest(const Compute& compute, Tick ticks) {
    ended_at = compute.wants_end() ? std::optional(ticks) : std::nullopt;
  }
  Tick applied() const { return group.applied_ticks; }
  std::uint64_t step() const { return schedule.StepsBefore(own.applied_ticks); }
  bool at_the_end() const { return applied() == schedule.total_ticks() || applied() == ended_at; }
  bool done() const { return own.has_state && at_the_end(); }  // of one that does not catch up
};

// The work of an open membership: tick after tick, up to the boundary that leads out of it. A
// member without the state catches up meanwhile. Lives from when all members are ready until the
// learner enters another membership; what leads there is its owner's to decide. What the program is
// at calls back into it: it is not destroyed before that is over, unless the tasks have ended.
class Training final : public TickRunner::Owner, public CatchUp::Owner {
 public:
  // Calls come within calls to the training, and from the event loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    // What this learner says at the end of a tick, beside its shards and who came in sync.
    virtual Trailer TrailerHead(const TickPlan& plan) = 0;
    virtual void OnTickBegun() = 0;  // frames that came early may be of it
    virtual void OnTickNews() = 0;   // CommitWhenComplete is to be called
    // Between two ticks: all members that get here know the same.
    virtual void OnBoundary(const TickOutcome& outcome) = 0;
    virtual void OnAllApplied() = 0;        // of one that catches up: no tick is left to come
    virtual void OnCatchUpAbandoned() = 0;  // what the program holds stands still from here on
    virtual bool OthersGoOn() const = 0;    // somebody has begun the next tick
    virtual void OnViolation(int rank, std::string cause) = 0;
    virtual void Fail(const Error& error) = 0;
  };
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    MetricsSink& metrics;
    SampleLedger* ledger = nullptr;
    const WorkSplit& split;
    MembershipView& view;
    Peers& peers;
    StateServer& states;
    TickRunner& ticks;
    CoordinatorSession& session;
    LearnerStats& stats;
    TrainingState& state;
    Owner& owner;
  };
  struct Options {
    std::size_t state_bytes = 0;
    std::size_t state_slice_bytes = 0;  // what is worth a sender
    Tick max_backlog = 4;               // ticks that others may be ahead of one that catches up
    double unix_offset_seconds = 0;
  };

  // Of the view's present membership, whose members are ready.
  Training(Options options, Parts parts, const Opening& opening);
  ~Training() override;

  // Sends states to those that lack them. Ticks do not begin yet.
  void Begin();
  void BeginTick();
  void CommitWhenComplete();
  void AdvanceCatchUp();
  void Finish() { stage_ = Stage::kFinishing; }  // no tick is left
  void Drain() { stage_ = Stage::kOver; }        // all members leave
  // It is left, or given up.
  void Leave();
  // Nothing more is begun of it. What the program is at is waited for: catching_up() until then.
  void EndCatchUp();

  // Of a tick frame of the present membership.
  void OnTickFrame(int rank, const Frame& frame);
  void OnStateFrame(int rank, const Frame& frame);  // while it catches up

  // What the program holds is changing to what follows from the tick.
  bool committing() const {
    return parts_.ticks.committing() || (catch_up_ && catch_up_->coming_in_sync());
  }
  bool catching_up() const { return catch_up_.has_value(); }
  const std::vector<bool>& in_sync() const { return team_.in_sync; }
  // By how many members a checkpoint is written: the first ones. Rank 0 never catches up.
  int CheckpointSlices(std::size_t slice_bytes) const;
  // To be said again on a new connection, once it was said.
  std::optional<Opened> opened() const;
  void ReportOpened();

 private:
  enum class Stage { kTicking, kFinishing, kOver };

  // ---- Ticks (training.cc) ----
  Trailer MakeTrailer() override;
  void OnComputed() override { parts_.owner.OnTickNews(); }
  void OnTickFailed(const Error& error) override { parts_.owner.Fail(error); }
  void ReleaseLeavers();
  void TakeOverMetrics();
  // What the epoch's evaluation came to, if this tick was its last and the program hears of it.
  std::optional<EvaluationTask> EvaluationEndedBy(const TickOutcome& outcome) const;
  bool DiffersFromOthers(const std::vector<int>& differing);
  void OnCommitted(const TickOutcome& outcome);
  void NoteOutcome(const TickOutcome& outcome);  // for metrics
  void Boundary(const TickOutcome& outcome);
  void RecordStopRequest(Tick ticks) { parts_.state.RecordStopRequest(parts_.compute, ticks); }
  Tick applied() const { return parts_.state.applied(); }

  // ---- Catching up (training_catch_up.cc) ----
  std::vector<int> StateSources() const;
  void ServeThoseBehind();
  Status OnTrailerOfOneBehind(int rank, const Frame& frame);
  bool MustWaitForThoseBehind() const;
  void OnMissed(const TickOutcome& outcome);
  void OnStateLoaded(const Position& position) override;
  void OnMissedTickApplied(const MissedTick& tick, bool last) override;
  void OnCatchUpStep() override;
  void OnCatchUpFailed(const Error& error) override { parts_.owner.Fail(error); }
  void ReportCatchUp();
  void FinishCatchUp();
  void AbandonCatchUp();

  const Options options_;
  const Parts parts_;
  const MembershipId membership_;
  const int rank_;
  Stage stage_ = Stage::kTicking;
  Team team_;
  CatchUpProgress progress_;  // of others
  std::optional<CatchUp> catch_up_;
  bool opened_reported_ = false;
  double pause_seconds_ = 0;  // from the last commit before the membership to the first one in it
  const Lifetime lifetime_;
};

}  // namespace pliant
