#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "trainer/protocol/catch_up_progress.h"
#include "trainer/protocol/membership_view.h"
#include "trainer/protocol/opening.h"
#include "trainer/protocol/team.h"
#include "trainer/runtime/carrier.h"
#include "trainer/runtime/catch_up.h"
#include "trainer/runtime/learner_context.h"
#include "trainer/runtime/tick_runner.h"

namespace pliant {

// Runs the ticks of one membership, up to the boundary at which the learner leaves it. A member
// without the state catches up meanwhile. Lives from when all members are ready until the learner
// enters another membership; the owner decides when. Running calls to the program call back into
// it: it must not be destroyed before they end, unless the tasks have ended.
class Training final : public TickRunner::Owner, public CatchUp::Owner {
 public:
  enum class Stage : std::uint8_t {
    kTicking,
    kFinishing,  // no tick is left
    kOver,       // the learner leaves
  };
  // Called from within calls to the training, and from the event loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The trailer of a tick, without the shards and the ranks that came in sync.
    virtual Trailer TrailerHead(const TickPlan& plan) = 0;
    // Between two ticks. All members that reach this boundary have the same outcome.
    virtual void OnBoundary(const TickOutcome& outcome) = 0;
    virtual bool OthersContinue() const = 0;  // another member has begun the next tick
    virtual void Fail(const Error& error) = 0;
  };
  struct Options {
    std::size_t state_slice_bytes = 0;  // minimum bytes per sender
    Tick max_backlog = 4;               // ticks that the others may be ahead during catch-up
    double unix_offset_seconds = 0;
  };

  // For the view's current membership, whose members are ready. All references are borrowed.
  Training(Options options, const LearnerContext& parts, TickRunner& ticks, Carrier& carrier,
           Owner& owner, const Opening& opening);
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
    return ticks_.committing() || (catch_up_ && catch_up_->coming_in_sync());
  }
  bool catching_up() const { return catch_up_.has_value(); }
  Stage stage() const { return stage_; }
  const std::vector<bool>& in_sync() const { return team_.in_sync; }
  // How many members write a checkpoint: the first ones by rank. Rank 0 never catches up.
  int CheckpointSlices(std::size_t slice_bytes) const;
  // The report to repeat on a new connection to the coordinator. None: not sent yet.
  std::optional<Opened> opened() const;
  void ReportOpened();

 private:
  // ---- Ticks (training.cc) ----
  Trailer MakeTrailer() override;
  void OnProgress() override { parts_.moves.Then(SimpleMove::kCommit); }
  void OnTickFailed(const Error& error) override { owner_.Fail(error); }
  void OnRoundsFailed(const std::string& why) override { carrier_.OnRoundsFailed(why); }
  void ReleaseLeavers();
  void TakeOverMetrics();
  // The result of the epoch's evaluation, if this tick was its last and the program wants it.
  std::optional<EvaluationTask> EvaluationEndedBy(const TickOutcome& outcome) const;
  // Whether the learner has failed for that.
  bool RefusesSums(const TickOutcome& outcome);
  bool DiffersFromOthers(const std::vector<int>& differing);
  void FailForShard(const SpotCheck& unequal);
  void OnCommitted(const TickOutcome& outcome);
  void NoteOutcome(const TickOutcome& outcome);  // for metrics
  void Boundary(const TickOutcome& outcome);
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
  void OnCatchUpFailed(const Error& error) override { owner_.Fail(error); }
  void ReportCatchUp();
  void FinishCatchUp();
  void AbandonCatchUp();

  const Options options_;
  const LearnerContext parts_;
  TickRunner& ticks_;
  Carrier& carrier_;
  Owner& owner_;
  const std::size_t state_bytes_;
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
