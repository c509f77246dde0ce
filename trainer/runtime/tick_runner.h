#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/memory_source.h"
#include "trainer/collective/reduction.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/team.h"
#include "trainer/protocol/tick_round.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/partial_tick.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/sample_ledger.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/tick_stopwatch.h"

namespace pliant {

// The running tick of a learner: its own part, what the others send of theirs, and the commit of
// what comes of it. Lives as long as the learner, because its buffers are used again in each tick,
// and because what was finished of an aborted tick is of use in the next membership.
class TickRunner {
 public:
  struct Options {
    BucketSizes buckets;
    std::uint64_t check_state_every_steps = 0;  // 0: never
  };
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    SampleLedger* ledger = nullptr;  // none: not kept
    MemorySource& gradients;
    const WorkSplit& split;
    Peers& peers;
    std::function<void()> aborted;
  };
  // What the runner asks of the learner, from the event loop, never within a call to the runner.
  class Owner {
   public:
    virtual ~Owner() = default;
    // What this learner says at the end of the tick, beside its shards.
    virtual Trailer MakeTrailer() = 0;
    // Its part is computed and sent.
    virtual void OnComputed() = 0;
    virtual void OnTickFailed(const Error& error) = 0;
  };
  struct Start {
    MembershipId membership;
    Tick number = 0;  // applied ticks before it
    TickPlan plan;
    int self = 0;  // rank
    // Borrowed until the tick is over, and the runner not busy() with it any more.
    const Team* team = nullptr;
    Owner* owner = nullptr;
  };

  TickRunner(Options options, Parts parts);

  // From here on frames of the tick are taken.
  void Begin(const Start& tick);
  // This learner's part, less what it has finished already.
  void ComputePart();
  // Ends the tick; no part of it is sent any more. Parts::aborted is called when what is finished
  // of it is kept; not, if nothing is computed. Aborting it again does nothing.
  void Abort();
  // Of the running tick. kInvalid, kConflict, kAlreadyExists: not what `rank` has to send.
  Status OnFrame(int rank, const Frame& frame);
  // As of PeerHandler.
  MutableBytes ReceiveBufferFor(int rank, const FrameHeader& header, std::size_t bytes);

  // All parts are there, and no commit has begun.
  bool complete() const;
  TickOutcome Outcome() const { return round_.Outcome(); }  // complete()
  void NoteComplete() { stopwatch_.OnComplete(parts_.tasks.Now()); }
  // Has the program apply a step or, with `evaluation`, hear of the evaluation that the tick ended.
  // Not for a tick of an evaluation of which the program hears nothing.
  void Commit(const TickOutcome& outcome, const std::optional<EvaluationTask>& evaluation,
              std::function<void(Status)> done);
  // The tick counts, for figures.
  void CountInto(LearnerStats& stats) const;
  // What was finished is of no use: the state has moved on.
  void ForgetPartial() { partial_.Clear(); }

  std::uint64_t check_state_every_steps() const { return options_.check_state_every_steps; }
  const TickPlan& plan() const { return tick_.plan; }
  std::span<const float> gradient() const { return reduction_.root(); }  // complete(), of a step
  Bytes buffers() const { return round_.buffers(); }
  const PartialTick& partial() const { return partial_; }
  // Compute is at something of the tick, and will call its owner.
  bool busy() const { return computing_ || committing_; }
  bool aborting() const { return aborting_; }
  bool committing() const { return committing_; }

 private:
  TickWork MakeWork();
  void OnOutput(const TickOutput& output);

  const Options options_;
  const Parts parts_;
  Reduction reduction_;
  TickRound round_;
  PartialTick partial_;
  TickStopwatch stopwatch_;
  Start tick_;
  std::vector<ShardTask> ledger_tasks_;  // that it gives to the tick, if there is a ledger
  double samples_computed_ = 0;
  bool computing_ = false;  // compute has the tick, even if it asks for no shard
  bool aborting_ = false;   // and is told to stop after the shard under way
  bool committing_ = false;
};

}  // namespace pliant
