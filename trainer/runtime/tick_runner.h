#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/team.h"
#include "trainer/protocol/tick_round.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/gradient_exchange.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/partial_tick.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/sample_ledger.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/tick_stopwatch.h"

namespace pliant {

// The running tick of a learner: computes its own part, receives the others' parts, and commits the
// result. Lives as long as the learner, because its buffers are used again in each tick, and
// because the finished part of an aborted tick is used in the next membership.
class TickRunner {
 public:
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    SampleLedger* ledger = nullptr;  // none: not kept
    const WorkSplit& split;
    Peers& peers;
    std::function<void()> aborted;
  };
  // Called from the event loop, never within a call to the runner.
  class Owner {
   public:
    virtual ~Owner() = default;
    // This learner's trailer for the tick, without its shards.
    virtual Trailer MakeTrailer() = 0;
    // This learner's part is computed and sent, or the devices have exchanged their gradients: the
    // tick may be complete.
    virtual void OnProgress() = 0;
    virtual void OnTickFailed(const Error& error) = 0;
    // The devices could not exchange their gradients. This learner's part is saved.
    virtual void OnRoundsFailed(const std::string& why) = 0;
  };
  struct Start {
    MembershipId membership;
    Tick number = 0;  // applied ticks before it
    TickPlan plan;
    // Borrowed until the tick is over: the position of the program's state before it.
    const Position* before = nullptr;
    int self = 0;  // rank
    // These are borrowed until the tick is over and the runner is no longer busy() with it.
    const Team* team = nullptr;
    GradientExchange* exchange = nullptr;  // of a step; an evaluation has none
    Owner* owner = nullptr;
  };

  // `check_state_every_steps`: steps between two comparisons of the members' states. 0: never.
  TickRunner(std::uint64_t check_state_every_steps, Parts parts)
      : check_state_every_steps_(check_state_every_steps), parts_(std::move(parts)) {}

  // From here on the runner accepts frames of the tick.
  void Begin(const Start& tick);
  // Computes this learner's part, except what it has finished already.
  void ComputePart();
  // Aborts the tick; no further part of it is sent. Parts::aborted is called when the finished part
  // is saved; not if it is saved already. A repeated call does nothing.
  void Abort();
  // For a frame of the running tick. kInvalid, kConflict, kAlreadyExists: not what `rank` should
  // send.
  Status OnFrame(int rank, const Frame& frame);
  // As in PeerHandler.
  MutableBytes ReceiveBufferFor(int rank, const FrameHeader& header, std::size_t bytes);

  // All parts have arrived, and no commit has begun.
  bool complete() const;
  TickOutcome Outcome() const;  // complete()
  // As in TickRound.
  StateMismatch MismatchOf(int rank) const {
    return round_.MismatchOf(rank, parts_.compute.state_shape());
  }
  void NoteComplete() { stopwatch_.OnComplete(parts_.tasks.Now()); }
  // Has the program apply a step or, with `evaluation`, gives it the result of the evaluation that
  // the tick ended. Not to be called for a tick of an evaluation whose result the program does not
  // receive.
  void Commit(const TickOutcome& outcome, const std::optional<EvaluationTask>& evaluation,
              std::function<void(Result<CommitOutput>)> done);
  // Adds the tick to the statistics.
  void CountInto(LearnerStats& stats) const;
  // Discards the finished part: the state has moved on.
  void ForgetPartial() { partial_.Clear(); }

  std::uint64_t check_state_every_steps() const { return check_state_every_steps_; }
  const TickPlan& plan() const { return tick_.plan; }
  MeanGradient mean() const { return tick_.exchange->mean(); }  // complete(), of a step
  Bytes buffers() const { return round_.buffers(); }
  const PartialTick& partial() const { return partial_; }
  // Compute works on the tick, and will call the tick's owner.
  bool busy() const { return computing_ || committing_; }
  bool aborting() const { return aborting_; }
  bool committing() const { return committing_; }

 private:
  std::optional<SpotCheck> CheckOfTick() const;
  TickWork MakeWork();
  void OnOutput(const TickOutput& output);
  void OnExchanged(const Status& exchanged);
  void AwaitRest(std::function<void()> then);

  const std::uint64_t check_state_every_steps_;
  const Parts parts_;
  TickRound round_;
  PartialTick partial_;
  std::optional<SpotCheck> check_;
  TickStopwatch stopwatch_;
  Start tick_;
  std::vector<ShardTask> ledger_tasks_;  // of this learner in the tick, if there is a ledger
  double samples_computed_ = 0;
  bool computing_ = false;  // Compute has the tick, even one without shards
  bool aborting_ = false;   // and has to stop after the current shard
  bool committing_ = false;
};

}  // namespace pliant
