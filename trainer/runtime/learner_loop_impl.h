#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/result.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/shard_dealing.h"
#include "trainer/collective/tree.h"
#include "trainer/runtime/held_frames.h"
#include "trainer/runtime/learner_loop.h"
#include "trainer/runtime/opening.h"
#include "trainer/runtime/program_watch.h"
#include "trainer/runtime/state_transfer.h"
#include "trainer/runtime/tick_round.h"
#include "trainer/runtime/wire.h"

namespace pliant {

// One idea a file:
//   learner_loop.cc        its life: start, what the coordinator says, leaving, exit
//   learner_membership.cc  into and out of memberships: proposals, opening, state, loss of peers
//   learner_restoring.cc   what a membership begins from that nobody holds: the newest checkpoint
//   learner_following.cc   a member without the state: taking it, and sending it to such a one
//   learner_ticks.cc       work within one: ticks, boundaries, the end of the job
//   learner_checkpoints.cc saving the state, now and then and when all leave
class LearnerLoop::Impl final : public PeerHandler, public CoordinatorHandler {
 public:
  Impl(LearnerOptions options, Schedule schedule, LearnerParts parts,
       std::function<void(LearnerExit)> on_exit);
  ~Impl() override { parts_.compute.ForgetCallbacks(); }

  void Start();
  void RequestLeave(Duration grace);
  void AskForLearners(int learners) { learners_asked_ = learners; }
  void Fail(const Error& error);
  Tick applied_ticks() const { return state_ticks(); }
  LearnerFigures figures() const;

 private:
  enum class Phase {
    kStarting,   // looks for a final model
    kIdle,       // takes part in nothing
    kOpening,    // has entered a membership
    kTicking,    // all its members hold the state
    kStopped,    // gave up; waits for another membership
    kReleased,   // the membership switched to does not name it: it may be asked for its state yet
    kDraining,   // the membership switched to is empty: checkpoint, then leave
    kFinishing,  // all ticks are applied: publishes the final model, or waits for it
    kExited,
  };
  struct Proposal {
    Membership membership;
    std::optional<MembershipId> replaces;
    bool prepared = false;
  };
  struct Loss {
    std::vector<LearnerId> accused;  // none: a peer gave up
    bool violation = false;          // as in Lost
    std::string cause;
  };

  // ---- The coordinator (learner_loop.cc) ----
  void OnCoordinatorConnected() override;
  void OnCoordinatorMessage(CoordinatorMessage message) override;
  void OnCoordinatorDisconnected(std::string_view reason) override;
  void On(const Welcome& welcome);
  void On(const Refused& refused);
  void On(const Prepare& prepare);
  void On(const Announce& announce);
  void On(const Withdraw& withdraw);
  void On(const Recover& recover);
  void On(const Leave& leave);
  void Tell(const LearnerMessage& message);
  void TellProgress();
  void SendHeartbeat();  // now, and from now on

  // ---- Leaving (learner_loop.cc) ----
  void FindFinalThenStart();
  void TryVolumeAgain(const Error& error, std::function<void()> task);  // a few times, then fails
  void LeaveWhenFree();     // at once, if nothing depends on this learner
  void LeaveUnlessFinal();  // Completed when the final model is there, else Drained
  void WatchProgram();      // now, and from now on
  void Exit(LearnerExit exit);

  // ---- Peers (learner_membership.cc) ----
  void OnPeerConnected(const LearnerId& peer) override;
  MutableBytes PlaceFor(const LearnerId& peer, const FrameHeader& header,
                        std::size_t bytes) override;
  void OnFrame(const LearnerId& peer, Frame frame) override;
  void OnPeerLost(const LearnerId& peer, const PeerLoss& loss) override;
  void Take(const LearnerId& peer, Frame frame);  // new, or held until now
  void Hold(const LearnerId& peer, Frame frame);
  std::shared_ptr<const LearnerId> Shared(const LearnerId& peer) const;
  void ConnectTo(const Membership& membership);
  void DropConnections();  // that no membership or proposal needs
  void Send(const LearnerId& peer, Frame frame);
  void SendToPeer(const LearnerId& peer, FrameKind kind, Bytes payload = {});
  void SendToMembers(FrameKind kind, Bytes payload = {});
  void Deliver(const LearnerId& peer, const Frame& frame);  // of the present membership
  void DeliverHeld();
  void DeliverHeldSoon();
  // Gives the membership up, and says so to all.
  void Stop(Loss loss);
  // The peer sent what the protocol does not allow.
  void StopOnViolation(const LearnerId& peer, std::string cause) {
    Stop({.accused = {peer}, .violation = true, .cause = std::move(cause)});
  }
  // What is finished of the tick is kept: the next membership need not compute it again.
  void GiveUpTick();
  void OnLoss(Loss loss);  // now or, while a commit is under way, after it

  // ---- Into and out of memberships (learner_membership.cc) ----
  void Propose(Membership membership, std::optional<MembershipId> replaces);
  void CheckPrepared();
  // `before`: the members of the membership that it switches from, at a boundary.
  void Enter(Membership membership, std::vector<Member> before = {});
  void SwitchTo(const Membership& membership);
  void Release(const Membership& membership);
  void AdvanceOpening();
  void CheckOpening();  // in time
  void Fetch(int source);
  void OnStateFrame(int rank, const Frame& frame);
  void AskForMoreState(int source);
  void ServeState(int to);  // from its beginning
  // Loads a state of another, or of a checkpoint, to go on from.
  void Load(std::shared_ptr<const StateCopy> state, Holding holding);

  // ---- Restoring (learner_restoring.cc) ----
  struct Restoring {  // of a checkpoint each member reads a part, and sends it to all others
    PartsReceiver parts;
    TimePoint began{};  // to read this one's
    TimePoint heard{};  // of any, last
    Duration patience;  // with those of whom nothing comes
    // When this one's is read.
    MembershipId membership{};                         // that wrote the checkpoint
    std::optional<StateSender> sender = std::nullopt;  // of the part
    std::optional<BatchPace> pace = std::nullopt;
    std::vector<std::uint32_t> places = {};  // of its tensors in the state
  };
  void LookForCheckpoint();
  void OnNewestCheckpoint(Result<StoredCheckpoint> newest);
  void OnRestored(Result<Restored> restored);
  bool IsOfThisSchedule(const TrainingPosition& position) const;
  void SettleOpening();  // nothing is ahead of what the members hold
  Restoring& restoring();
  // What is sent to a member that is not connected nobody gets, and nobody hears of.
  bool PartsCanCome() const { return !parts_over_ && missing_since_.empty(); }
  void ReadPart(const std::string& checkpoint);
  void OnPartRead(Result<Restored> part);
  void SendPart();  // as much as may be under way
  void OnPartTaken(int rank);
  void OnPartFrame(int rank, const Frame& frame);
  void OnRestoreFrame(int rank, const Frame& frame);
  void OnLostWhileRestoring(int rank);
  void AwaitParts();
  void LoadWhenWhole();
  void GiveUpParts(const std::string& cause);

  // ---- Work (learner_ticks.cc) ----
  void BeginTicking();
  void TakeOverMetrics();
  ShardMap RegularMap() const;
  std::vector<int> LearnersOfRanks() const;
  void ReleaseLeavers();  // of the membership before, if nobody needs them any more
  void BeginTick();
  void FillWork();
  void OnTickComputed(const TickOutput& output);
  void FillTrailer(const TickOutput& output);
  void Keep(const TickOutput& output);
  void ForgetTick();
  bool IsFinished(int shard) const {
    return static_cast<std::size_t>(shard) < finished_.size() &&
           finished_[static_cast<std::size_t>(shard)].has_value();
  }
  void OnTickFrame(int rank, const Frame& frame);
  // What the epoch's evaluation came to, if this tick was its last and the program hears of it.
  std::optional<EvaluationTask> EvaluationEndedBy(const TickOutcome& outcome) const;
  void CommitWhenComplete();
  bool DiffersFromOthers(const std::vector<int>& differing);
  void OnCommitted(const TickOutcome& outcome);
  void NoteWish(Tick ticks);  // of the program, whose state after so many ticks is there
  void NoteOutcome(const TickOutcome& outcome);  // for metrics
  void CountTick(TimePoint now);
  void TuneBuckets(TimePoint now);
  void Boundary(const TickOutcome& outcome);
  void ReportOpened();
  void Finish();
  void PublishFinal();
  void RetryPublishing(const Error& error);
  void PollFinal();
  void Complete(const std::string& parameters_sha256);

  // ---- Following (learner_following.cc) ----
  struct FollowedTick {  // is complete, and not yet applied to the follower's state
    TickPlan plan;
    FloatBuffer gradient;
    Bytes buffers;
    ShardSums sums;
    std::optional<EvaluationTask> evaluated;  // ended by it
    // After it.
    ShardSums evaluation;
    std::string last_line;
  };
  struct Following {
    // Its own state, and what belongs to it.
    Tick applied = 0;
    ShardSums evaluation;
    std::string last_line;

    SlicedStateReceiver state;
    Holding from;         // what comes
    bool loaded = false;  // it has come
    bool busy = false;    // it is loaded, or a commit is made
    bool ended = false;   // nothing is begun any more
    std::deque<FollowedTick> backlog;
    std::optional<TickOutcome> last;  // of the tick after which it is in step
    Tick told = 0;                    // to the others: it follows up to here
    bool told_in_step = false;
  };
  std::vector<int> StateSources() const;
  void ServeFollowers();
  void ServeNext(int follower);
  void OnFollowerTrailer(int follower, const Frame& frame);
  bool FollowersAreFarBehind() const;
  bool OthersGoOn() const;
  void BeginFollowing(const Holding& furthest);
  void OnFollowedState(int source, const Frame& frame);
  void Follow(const TickOutcome& outcome);
  void ApplyFollowed();
  void OnFollowedOperation();
  void TellFollowed();
  void ComeInStep();
  void EndFollowing();  // now or, while an operation is under way, after it
  void StopFollowing();

  // ---- Checkpoints (learner_checkpoints.cc) ----
  struct SaveUnderWay;
  struct SliceFailure {
    Tick tick = 0;
    std::uint64_t recoveries = 0;  // a tick may be saved again after one
    Error error;
  };
  bool CheckpointDue(const TickPlan& plan);
  int Slices() const;
  // Its slice, if it has one. `done` is for rank 0: the checkpoint is there, or it is not.
  void SaveCheckpoint(int slices, std::function<void(bool saved)> done);
  void OnSliceWritten(const std::shared_ptr<SaveUnderWay>& save,
                      Result<std::optional<Manifest>> written);
  void AwaitSlices(const std::shared_ptr<SaveUnderWay>& save, TimePoint by);
  void EndSave(const SaveUnderWay& save, Result<std::optional<Manifest>> saved);
  void TellSliceFailed(const SaveUnderWay& save, const Error& error);
  void OnSliceFailed(const LearnerId& peer, const Frame& frame);
  Error WhyIncomplete(const SaveUnderWay& save) const;
  void NoteWriteError(const Error& error);  // for progress
  void Drain();
  void SaveLast(int slices);

  // ---- Small things ----
  static constexpr std::size_t kPayloadsKeptBytes = std::size_t{8} << 20;  // of trailers
  bool IsMember() const {  // of a membership that works, or tries to
    return phase_ == Phase::kOpening || phase_ == Phase::kTicking;
  }
  int rank() const { return *membership_.RankOf(options_.self); }
  const LearnerId& member(int rank) const {
    return membership_.members[static_cast<std::size_t>(rank)].id;
  }
  const ShardMap& tick_map() const { return redo_ ? redo_->map : map_; }
  int members_in_step() const { return static_cast<int>(std::ranges::count(in_step_, true)); }
  bool at_the_end() const { return applied_ == schedule_.total_ticks() || applied_ == ended_at_; }
  bool done() const { return has_state_ && !following_ && at_the_end(); }
  // Of a follower, `applied_` counts the ticks of its membership.
  Tick state_ticks() const { return following_ ? following_->applied : applied_; }
  std::uint64_t step() const { return schedule_.StepsBefore(state_ticks()); }
  const BucketSizes& bucket_sizes() const { return bucket_sizes_[bucket_choice_]; }
  Holding holding() const {
    return {.has_state = has_state_,
            .applied_ticks = applied_,
            .lineage = lineage_,
            .current = current_,
            .evaluation = metrics_.evaluation(),
            .last_line = last_line_,
            .finished = FinishedNodes()};
  }
  std::vector<NodeIndex> FinishedNodes() const;
  // As in Hello: others open the newest membership, or write a checkpoint, and may fail to.
  std::optional<Membership> membership_before() const {
    const bool waits = phase_ == Phase::kReleased || phase_ == Phase::kDraining ||
                       (phase_ == Phase::kStopped && lost_);
    if (!waits || newest_->id == membership_.id) return std::nullopt;
    return membership_;
  }
  CheckpointLabel Label() const;
  double Unix(TimePoint time) const {
    return ToSeconds(time.time_since_epoch()) + options_.unix_offset_seconds;
  }
  // Runs `task` after `delay`, unless the loop is destroyed or the learner has exited by then.
  void After(Duration delay, std::function<void()> task);
  // A callback for others: does nothing once the loop is destroyed or the learner has exited.
  template <typename T>
  std::function<void(T)> Guarded(std::type_identity_t<std::function<void(T)>> task) {
    return [alive = std::weak_ptr(alive_), task = std::move(task)](T value) {
      if (!alive.expired()) task(std::move(value));
    };
  }

  const LearnerOptions options_;
  const Schedule schedule_;
  const WorkSplit split_;
  const LearnerParts parts_;
  const std::function<void(LearnerExit)> on_exit_;

  Phase phase_ = Phase::kStarting;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  // The coordinator.
  bool linked_ = false;
  bool welcomed_ = false;
  std::uint64_t term_ = 0;  // the highest seen
  Duration heartbeat_ = std::chrono::seconds(1);
  std::uint64_t heartbeat_round_ = 0;  // a timer of an earlier one does nothing

  // Leaving.
  bool leave_requested_ = false;
  std::optional<TimePoint> gone_by_;
  bool last_call_ = false;
  int volume_tries_ = 0;
  ProgramWatch watch_{options_.step_timeout};

  // Memberships.
  Membership membership_;             // the one it takes, or took last, part in; 0.0: none
  std::optional<Membership> newest_;  // entered, or switched to: not always with this learner in it
  // Who left it by a boundary, and who is to hold its state before they may go.
  std::vector<Member> before_;
  std::optional<Proposal> proposal_;
  std::optional<Membership> announcement_;  // for the next trailer
  std::optional<Membership> pending_;  // to enter when a commit, a load or the last shard is done
  HeldFrames held_;                    // of memberships and ticks to come
  bool held_are_due_ = false;          // no frame may overtake them
  // Peers that a connection is wanted to, in order. Frames that are held name them so.
  std::vector<std::shared_ptr<const LearnerId>> dialed_;
  std::optional<Lost> lost_;  // why it is stopped: said again on a new connection

  // The opening.
  std::optional<Opening> opening_;
  std::map<LearnerId, TimePoint> missing_since_;  // members without a connection, while it opens
  std::shared_ptr<StateCopy> fetched_;            // into it
  std::optional<StateReceiver> receiver_;
  std::optional<MembershipId> looking_for_;  // for which membership checkpoints are looked at
  bool volume_answered_ = false;
  std::optional<Restoring> restoring_;  // until it is whole, and rank 0 has it, too
  bool parts_over_ = false;             // in this membership rank 0 reads all
  bool current_ = false;                // as in Holding
  bool loading_ = false;
  std::optional<int> fetching_from_;
  bool opened_reported_ = false;

  // Who of the membership holds its state, by rank.
  const Tick backlog_most_;    // ticks that others may be ahead of a follower
  std::vector<bool> in_step_;  // all but followers
  std::vector<Tick> followed_to_;
  std::vector<bool> said_in_step_;  // followers that are, which the others are to be told
  std::map<int, StateSender> serving_;
  std::optional<Following> following_;  // this one does

  // The state.
  bool has_state_ = false;
  int learners_asked_ = 0;
  Tick applied_ = 0;
  Tick applied_most_ = 0;
  MembershipId lineage_;  // as in Holding
  // After how many ticks the program wants no more. Who follows learns of it with the state.
  std::optional<Tick> ended_at_;
  std::optional<TimePoint> last_commit_;
  double pause_seconds_ = 0;  // before the first commit of the membership

  // The running tick, or the one that was given up: the one after `applied_`.
  ShardMap map_;                      // of the membership
  std::vector<int> learner_of_rank_;  // likewise: its ranks share a machine
  int learners_ = 0;                  // likewise: how many there are
  std::optional<ShardDealing> redo_;  // in its place, in the first tick of the membership
  TickPlan plan_;
  std::vector<int> asked_;  // shards that compute has in hand, in their order
  bool computing_ = false;  // it has, even if they are none
  bool giving_up_ = false;  // and is told to stop after the one under way
  // What this learner has computed of the tick.
  std::vector<std::optional<ShardSums>> finished_;  // by shard
  std::vector<HeldNode> finished_nodes_;            // over them; in an evaluation they have no sum
  Bytes finished_buffers_;                          // of shard 0
  std::size_t shards_kept_ = 0;                     // of them, from before it was given up
  TickRound round_;
  TickOutcome outcome_;  // while it is committed
  // Memory that is used again in each tick.
  TickWork work_;
  Trailer trailer_;       // this learner's
  Trailer peer_trailer_;  // the one that is read
  BytePool payloads_{kPayloadsKeptBytes};
  WireWriter writer_{payloads_};
  Reduction reduction_;
  const std::vector<BucketSizes> bucket_sizes_;  // to choose among
  std::size_t bucket_choice_ = 0;                // for this tick: rank 0 said it in the one before
  BucketTuner bucket_tuner_;                     // of this membership; rank 0's counts
  std::vector<ShardTask> tasks_;                 // that it gives to the tick, if there is a ledger
  bool committing_ = false;
  std::optional<Loss> loss_in_commit_;  // of a peer: told when it is clear what follows
  TimePoint tick_began_{};
  Duration data_waited_{};     // within it; figures of a tick are counted together, when it is over
  TimePoint tick_computed_{};  // its part of it
  TimePoint tick_complete_{};  // the others' parts, too
  double samples_computed_ = 0;

  // Checkpoints and the end.
  const std::size_t state_bytes_;
  bool saving_ = false;
  int writing_ = 0;  // copies and writes of the state, or its slices, under way
  bool leave_when_written_ = false;
  std::uint64_t recoveries_ = 0;  // memberships that were entered without a boundary
  std::optional<Tick> saved_tick_;
  std::optional<TimePoint> last_save_;  // by anybody; or when it entered its first membership
  // After a failure: before the next one is due, if that is far away.
  std::optional<TimePoint> save_again_at_;
  Backoff save_backoff_{{.first = std::chrono::seconds(10), .most = std::chrono::minutes(5)}};
  CheckpointReport checkpoint_report_;
  bool checkpoint_known_ = false;
  std::optional<SliceFailure> slice_failure_;  // of another, as it told last
  bool exporting_ = false;
  Backoff final_backoff_;
  bool polling_ = false;

  LearnerFigures figures_;  // without `member`
  LearnerFigures told_;     // as of the last heartbeat
  MetricsAccumulator metrics_;
  std::string last_line_;  // of metrics, of the newest tick; "" if it has none
};

}  // namespace pliant
