#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "trainer/protocol/early_frames.h"
#include "trainer/protocol/membership_view.h"
#include "trainer/protocol/state_server.h"
#include "trainer/protocol/tick_round.h"
#include "trainer/runtime/carrier.h"
#include "trainer/runtime/checkpoint_driver.h"
#include "trainer/runtime/checkpoint_label.h"
#include "trainer/runtime/coordinator_session.h"
#include "trainer/runtime/final_model.h"
#include "trainer/runtime/hang_watch.h"
#include "trainer/runtime/learner_loop.h"
#include "trainer/runtime/opening_run.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/tick_runner.h"
#include "trainer/runtime/training.h"
#include "trainer/runtime/volume_retry.h"

namespace pliant {

// One topic per file:
//   learner_loop.cc        start, the coordinator's messages, leaving, exit
//   learner_membership.cc  into and out of memberships: proposals, opening, training, loss of peers
//   learner_peers.cc       connections, and the frames that arrive on them
//   learner_ending.cc      checkpoints; the end of the job, and of a membership whose members all
//                          leave
class LearnerLoop::Impl final : public PeerHandler,
                                public CoordinatorSession::Owner,
                                public OpeningRun::Owner,
                                public Training::Owner {
 public:
  Impl(LearnerOptions options, Schedule schedule, LearnerParts parts,
       std::function<void(LearnerExit)> on_exit);
  // Possibly in the middle of a tick, as after a signal: running calls then do not call back.
  ~Impl() override { tasks_.End(); }

  void Start();
  void RequestLeave(Duration grace);
  void AskForLearners(int learners) { learners_asked_ = learners; }
  void Fail(const Error& error) override;
  Tick applied_ticks() const { return state_.own.applied_ticks; }
  LearnerStats stats() const;

 private:
  enum class Phase {
    kStarting,   // looks for a final model
    kIdle,       // takes part in nothing
    kOpening,    // has entered a membership
    kTicking,    // all its members hold the state
    kStopped,    // aborted its membership; waits for another
    kReleased,   // not in the next membership; may still be called back
    kDraining,   // all members leave: checkpoint, then exit
    kFinishing,  // all ticks are applied: publishes the final model, or waits for it
    kExited,
  };

  // A consequence of an event. It is carried out when the event's handler has returned, so that no
  // part of the learner is created or destroyed while one of its functions runs. Only an exit is
  // immediate: it destroys no part.
  enum class Step {
    kAdvanceOpening,
    kBeginTraining,
    kBeginTick,
    kCommit,  // if the tick is complete
    kAdvanceCatchUp,
    kFinish,
    kDrain,
    kTakeEarlyFrames,
    kTakeEarlyFramesSoon,
  };
  struct EnterStep {
    Membership membership;
    std::vector<Member> before = {};  // as in Enter
  };
  struct SwitchStep {
    Membership membership;
  };
  struct LossStep {
    Loss loss;
  };
  struct StopStep {
    Loss loss;
  };
  using Move = std::variant<Step, EnterStep, SwitchStep, LossStep, StopStep>;
  void Then(Move move) { moves_.push_back(std::move(move)); }
  void CarryOut();
  void Do(Step step);

  // ---- The coordinator (learner_loop.cc) ----
  std::vector<LearnerMessage> Greeting() override;
  Progress MakeProgress() override;
  void Obey(const CoordinatorMessage& message) override;

  // ---- Leaving (learner_loop.cc) ----
  void FindFinalThenStart();
  void LeaveWhenFree();     // at once, if nothing depends on this learner
  void LeaveUnlessFinal();  // completed if the final model exists, else drained
  void Exit(LearnerExit exit);

  // ---- Peers (learner_peers.cc) ----
  void OnPeerConnected(const LearnerId& peer) override;
  MutableBytes ReceiveBufferFor(const LearnerId& peer, const FrameHeader& header,
                                std::size_t bytes) override;
  void OnFrame(const LearnerId& peer, Frame frame) override;
  void OnPeerLost(const LearnerId& peer, const PeerLoss& loss) override;
  void HandleLost(const LearnerId& peer, const PeerLoss& loss);
  void Take(const LearnerId& peer, Frame frame);  // new, or held so far
  void Hold(const LearnerId& peer, Frame frame);
  void Deliver(const LearnerId& peer, const Frame& frame);  // of the current membership
  void TakeEarlyFrames();
  void TakeEarlyFramesSoon();

  // ---- Into and out of memberships (learner_membership.cc) ----
  // Aborts the membership, and notifies its members and the coordinator.
  void Stop(Loss loss);
  void OnLoss(Loss loss);  // stops now or, during a commit, after it
  // Enters the membership whose entry was put off, if there is one.
  void EnterNow();
  void Propose(Membership membership, std::optional<MembershipId> replaces);
  void CheckPrepared();
  // `before`, when it switches at a boundary: MembershipView::MembersToAnswerFor; else empty.
  void Enter(Membership membership, std::vector<Member> before = {});
  void SwitchTo(const Membership& membership);
  void Release(const Membership& membership);

  // ---- The opening (learner_membership.cc) ----
  void OnOpeningNews() override { Then(Step::kAdvanceOpening); }
  void OnReady() override { Then(Step::kBeginTraining); }
  void OnAbsent(const std::vector<int>& ranks) override;
  // The peer sent what the protocol does not allow: its link counts as broken.
  void OnViolation(int rank, std::string cause) override {
    Then(StopStep{{.accused = {view_.member(rank)}, .cause = std::move(cause)}});
  }
  void OnFreshStart() override { state_.MoveTo({.has_state = true}); }
  void LoadState(std::shared_ptr<const StateCopy> state, StateSummary holding) override;

  // ---- Training (learner_membership.cc) ----
  void BeginTraining();
  Trailer TrailerHead(const TickPlan& plan) override;
  void OnTickBegun() override { Then(Step::kTakeEarlyFrames); }
  void OnTickNews() override { Then(Step::kCommit); }
  void OnBoundary(const TickOutcome& outcome) override;
  void OnAllApplied() override { Then(Step::kFinish); }
  void OnCatchUpAbandoned() override { EnterNow(); }
  bool OthersContinue() const override;

  // ---- Checkpoints, and the end (learner_ending.cc) ----
  // Writes this member's slice, if it has one. `done` is for rank 0: whether the checkpoint is
  // there.
  void SaveCheckpoint(int slices, std::function<void(bool saved)> done);
  void Finish();
  void Complete(const std::string& parameters_sha256);
  void Drain();
  void SaveLast(int slices);

  // ---- Small things ----
  bool IsMember() const {  // of a membership that trains or opens
    return phase_ == Phase::kOpening || phase_ == Phase::kTicking;
  }
  bool catching_up() const { return training_ && training_->catching_up(); }
  bool done() const { return !catching_up() && state_.done(); }
  // The program's state is changing to that after the tick.
  bool committing() const { return training_ && training_->committing(); }
  CheckpointLabel Label() const {
    return LabelOf(state_.schedule, state_.group, view_.current().id, options_.framework);
  }

  const LearnerOptions options_;
  TrainingState state_;
  const WorkSplit split_;  // by the schedule in state_
  const LearnerParts parts_;
  const std::function<void(LearnerExit)> on_exit_;

  Phase phase_ = Phase::kStarting;
  Tasks tasks_{parts_.loop, [this] { CarryOut(); }};
  std::vector<Move> moves_;  // in order

  CoordinatorSession session_{parts_.link, tasks_, options_.min_term, *this};

  // Leaving.
  std::optional<TimePoint> gone_by_;  // none: it was not asked to leave
  bool drain_vote_ = false;           // half of its grace is over: it votes to drain
  VolumeRetry volume_retry_;
  HangWatch hang_watch_;

  LearnerStats stats_;     // without `member`
  LearnerStats reported_;  // as of the last heartbeat
  MembershipView view_{options_.self};
  Peers peers_{parts_.transport, view_, state_.group, stats_};
  std::optional<Lost> lost_;  // why it is stopped; repeated on a new connection
  EarlyFrames early_;         // frames of later memberships and ticks
  bool early_due_ = false;    // they will be taken soon; no frame may overtake them

  const Tick max_backlog_;  // ticks that the others may be ahead during catch-up
  bool loading_ = false;    // loads a state to continue from
  StateServer states_;      // states that this learner sends to others
  int learners_asked_ = 0;

  // Checkpoints and the end.
  const std::size_t state_bytes_;
  CheckpointDriver checkpoints_;
  FinalModel final_model_;
  TickRunner ticks_;
  GradientExchanges exchanges_;
  Carrier carrier_;

  // Parts of the current membership: while it opens, and after that. Last: they use the rest.
  std::optional<OpeningRun> opening_;
  std::optional<Training> training_;
};

}  // namespace pliant
