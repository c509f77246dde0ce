#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
#include "trainer/runtime/learner_context.h"
#include "trainer/runtime/learner_options.h"
#include "trainer/runtime/learner_phase.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/moves.h"
#include "trainer/runtime/opening_run.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/tick_runner.h"
#include "trainer/runtime/training.h"
#include "trainer/runtime/volume_retry.h"

namespace pliant {

// A learner's elastic loop: takes part in one membership after the other until the job is complete
// or the learner has to leave. It owns no thread: everything runs on the event loop; compute and
// disk are behind interfaces.
//
// One topic per file:
//   learner_loop.cc        start, the coordinator's messages, what follows an event
//   learner_membership.cc  into and out of memberships: proposals, opening, training, loss of peers
//   learner_peers.cc       connections, and the frames that arrive on them
//   learner_ending.cc      leaving and exit; checkpoints; the end of the job, and of a membership
//                          whose members all leave
class LearnerLoop final : private PeerHandler,
                          private CoordinatorSession::Owner,
                          private OpeningRun::Owner,
                          private Training::Owner {
 public:
  // `on_exit` is called once, on the event loop; nothing happens after it.
  LearnerLoop(LearnerOptions options, Schedule schedule, LearnerParts parts,
              std::function<void(LearnerExit)> on_exit);
  // Possibly in the middle of a tick, as after a signal: running calls then do not call back.
  ~LearnerLoop() override { tasks_.End(); }

  void Start();
  // For SIGTERM: leaves at the next boundary, at the latest when the grace period is over.
  void RequestLeave(Duration grace);
  // How many learners the program wants to train on; 0: all that there are. Rank 0 reports it.
  void AskForLearners(int learners) { learners_asked_ = learners; }
  // The program has failed outside of a call from Compute.
  void Fail(const Error& error) override;
  Tick applied_ticks() const { return state_.own.applied_ticks; }
  LearnerStats stats() const;

 private:
  using Phase = LearnerPhase;

  void CarryOut();  // what follows an event; called by the tasks only
  void CheckInvariants() const;
  void Do(SimpleMove move);

  // ---- The coordinator (learner_loop.cc) ----
  void FindFinalThenStart();
  std::vector<LearnerMessage> Greeting() override;
  Progress MakeProgress() override;
  void Obey(const CoordinatorMessage& message) override;

  // ---- Leaving (learner_ending.cc) ----
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
  void TakeEarlyFramesSoon();

  // ---- Into and out of memberships (learner_membership.cc) ----
  // Aborts the membership, and notifies its members and the coordinator.
  void Stop(Loss loss);
  void OnLoss(Loss loss);  // stops now or, during a commit, after it
  void Propose(Membership membership, std::optional<MembershipId> replaces);
  void CheckPrepared();
  // `before`, when it switches at a boundary: MembershipView::MembersToAnswerFor; else empty.
  void Enter(Membership membership, std::vector<Member> before = {});
  void SwitchTo(const Membership& membership);

  // ---- The opening (learner_membership.cc) ----
  void LoadState(std::shared_ptr<const StateCopy> state, StateSummary holding) override;

  // ---- Training (learner_membership.cc) ----
  void BeginTraining();
  Trailer TrailerHead(const TickPlan& plan) override;
  void OnBoundary(const TickOutcome& outcome) override;
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
  bool catching_up() const { return training_ && training_->catching_up(); }
  bool done() const { return !catching_up() && state_.done(); }

  const LearnerOptions options_;
  TrainingState state_;
  const WorkSplit split_;  // by the schedule in state_
  const LearnerParts parts_;
  const std::function<void(LearnerExit)> on_exit_;

  Phase phase_ = Phase::kStarting;
  Tasks tasks_{parts_.loop, [this] { CarryOut(); }};
  Moves moves_;

  CoordinatorSession session_{parts_.link, tasks_, options_.min_term, *this};

  struct AskedToLeave {
    TimePoint gone_by;        // at the latest
    bool drain_vote = false;  // half of its grace is over: it votes to drain
  };
  std::optional<AskedToLeave> leaving_;
  VolumeRetry volume_retry_;
  HangWatch hang_watch_;

  LearnerStats stats_;     // without `member`
  LearnerStats reported_;  // as of the last heartbeat
  MembershipView view_{options_.self};
  Peers peers_{parts_.transport, view_, state_.group, stats_};
  std::optional<Lost> lost_;  // why it is stopped; repeated on a new connection
  EarlyFrames early_;         // frames of later memberships and ticks
  bool early_due_ = false;    // they will be taken soon; no frame may overtake them

  bool loading_ = false;  // loads a state to continue from
  StateServer states_;    // states that this learner sends to others
  int learners_asked_ = 0;

  // Checkpoints and the end.
  CheckpointDriver checkpoints_;
  FinalModel final_model_;
  // The steps of the final model that it found, perhaps of a training with another schedule.
  std::optional<std::uint64_t> final_step_;
  TickRunner ticks_;
  GradientExchanges exchanges_;
  Carrier carrier_;

  const LearnerContext context_{.tasks = tasks_,
                                .moves = moves_,
                                .compute = parts_.compute,
                                .checkpointer = parts_.checkpointer,
                                .metrics = parts_.metrics,
                                .ledger = parts_.ledger,
                                .split = split_,
                                .view = view_,
                                .peers = peers_,
                                .states = states_,
                                .session = session_,
                                .volume_retry = volume_retry_,
                                .stats = stats_,
                                .state = state_};
  // Parts of the current membership: while it opens, and after that. Last: they use the rest.
  std::optional<OpeningRun> opening_;
  std::optional<Training> training_;
};

}  // namespace pliant
