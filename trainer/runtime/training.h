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
#include "trainer/runtime/carrier.h"
#include "trainer/runtime/catch_up.h"
#include "trainer/runtime/coordinator_session.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/tick_runner.h"

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
  MetricsAccumulator metrics;  // over the group's ticks
  Tick max_applied = 0;        // the highest applied() so far
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
    ended_at = compute.wants_end() ? std::optional(ticks) : std::nullopt;
  }
  Tick applied() const { return group.applied_ticks; }
  std::uint64_t step() const { return schedule.StepsBefore(own.applied_ticks); }
  bool at_the_end() const { return applied() == schedule.total_ticks() || applied() == ended_at; }
  bool done() const { return own.has_state && at_the_end(); }  // not valid during catch-up

 private:
  void UseSegments();
};

// Runs the ticks of one membership, up to the boundary at which the learner leaves it. A member
// without the state catches up meanwhile. Lives from when all members are ready until the learner
// enters another membership; the owner decides when. Running calls to the program call back into
// it: it must not be destroyed before they end, unless the tasks have ended.
class Training final : public TickRunner::Owner, public CatchUp::Owner {
 public:
  // Called from within calls to the training, and from the event loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The trailer of a tick, without the shards and the ranks that came in sync.
    virtual Trailer TrailerHead(const TickPlan& plan) = 0;
    virtual void OnTickBegun() = 0;  // early frames may belong to it
    virtual void OnTickNews() = 0;   // call CommitWhenComplete
    // Between two ticks. All members that reach this boundary have the same outcome.
    virtual void OnBoundary(const TickOutcome& outcome) = 0;
    virtual void OnAllApplied() = 0;          // during catch-up: no further tick will come
    virtual void OnCatchUpAbandoned() = 0;    // the program's state no longer changes
    virtual bool OthersContinue() const = 0;  // another member has begun the next tick
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
    Carrier& carrier;
    CoordinatorSession& session;
    LearnerStats& stats;
    TrainingState& state;
    Owner& owner;
  };
  struct Options {
    std::size_t state_bytes = 0;
    std::size_t state_slice_bytes = 0;  // minimum bytes per sender
    Tick max_backlog = 4;               // ticks that the others may be ahead during catch-up
    double unix_offset_seconds = 0;
  };

  // For the view's current membership, whose members are ready.
  Training(Options options, Parts parts, const Opening& opening);
  ~Training() override;

  // Sends the state to members that lack it. Does not begin ticks yet.
  void Begin();
  void BeginTick();
  void CommitWhenComplete();
  void AdvanceCatchUp();
  void Finish() { stage_ = Stage::kFinishing; }  // no tick is left
  void Drain() { stage_ = Stage::kOver; }        // all members leave
  // The learner leaves the membership, or aborts it.
  void Leave();
  // Begins no further calls to the program. catching_up() stays true until the running one ends.
  void EndCatchUp();

  // `frame` is a tick frame of the current membership.
  void OnTickFrame(int rank, const Frame& frame);
  void OnStateFrame(int rank, const Frame& frame);  // while it catches up

  // The program's state is changing to that after the tick.
  bool committing() const {
    return parts_.ticks.committing() || (catch_up_ && catch_up_->coming_in_sync());
  }
  bool catching_up() const { return catch_up_.has_value(); }
  const std::vector<bool>& in_sync() const { return team_.in_sync; }
  // How many members write a checkpoint: the first ones by rank. Rank 0 never catches up.
  int CheckpointSlices(std::size_t slice_bytes) const;
  // The report to repeat on a new connection to the coordinator. None: not sent yet.
  std::optional<Opened> opened() const;
  void ReportOpened();

 private:
  enum class Stage { kTicking, kFinishing, kOver };

  // ---- Ticks (training.cc) ----
  Trailer MakeTrailer() override;
  void OnProgress() override { parts_.owner.OnTickNews(); }
  void OnTickFailed(const Error& error) override { parts_.owner.Fail(error); }
  void OnRoundsFailed(const std::string& why) override { parts_.carrier.OnRoundsFailed(why); }
  void ReleaseLeavers();
  void TakeOverMetrics();
  static void AddNoise(NoiseWindow& noise, const TickPlan& plan, const ShardSpread& spread,
                       const CommitOutput& output);
  // The result of the epoch's evaluation, if this tick was its last and the program wants it.
  std::optional<EvaluationTask> EvaluationEndedBy(const TickOutcome& outcome) const;
  bool DiffersFromOthers(const std::vector<int>& differing);
  void FailForShard(const SpotCheck& unequal);
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
  void OnMissedTickApplied(const MissedTick& tick, const CommitOutput& output, bool last) override;
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
  CatchUpProgress progress_;  // of the other members
  std::optional<CatchUp> catch_up_;
  bool opened_reported_ = false;
  double pause_seconds_ = 0;  // from the last commit before the membership to the first one in it
  const Lifetime lifetime_;
};

}  // namespace pliant
