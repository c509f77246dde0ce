#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/coordinator_link.h"

// The parts of a simulated process: everything that happens to it goes through its gate.
namespace pliant::sim {

// A process that is stopped (SIGSTOP, a machine that hangs) does nothing, and catches up later. One
// that is dead, whose gate is gone, does nothing any more.
class Gate {
 public:
  void Run(std::function<void()> task) {
    if (stalled_) {
      waiting_.push_back(std::move(task));
    } else {
      task();
    }
  }
  void Stall() { stalled_ = true; }
  void Resume();
  bool stalled() const { return stalled_; }

 private:
  bool stalled_ = false;
  std::deque<std::function<void()>> waiting_;
};

// Tasks and timers come late by what `late` draws, as behind the frames that one read of a socket
// brings: only the order among tasks that were posted for at once is kept.
class GatedLoop final : public EventLoop {
 public:
  GatedLoop(
      EventLoop& loop, std::shared_ptr<Gate> gate,
      std::function<Duration()> late = [] { return Duration::zero(); })
      : loop_(loop), gate_(std::move(gate)), late_(std::move(late)) {}
  TimePoint Now() const override { return loop_.Now(); }
  void Post(std::function<void()> task) override { PostAfter(Duration::zero(), std::move(task)); }
  TimerId PostAfter(Duration delay, std::function<void()> task) override;
  void Cancel(TimerId timer) override { loop_.Cancel(timer); }

 private:
  EventLoop& loop_;
  const std::shared_ptr<Gate> gate_;
  const std::function<Duration()> late_;
  TimePoint posted_last_{};  // when the last of those for at once is due
};

// `see` sees what is sent, and may change it, and what comes; `meet` every connection that is made.
class GatedTransport final : public PeerTransport, private PeerHandler {
 public:
  using See = std::function<void(const LearnerId& peer, Frame& frame, bool sent)>;
  using Meet = std::function<void(const LearnerId& peer)>;

  GatedTransport(std::unique_ptr<PeerTransport> inner, std::shared_ptr<Gate> gate, See see,
                 Meet meet)
      : inner_(std::move(inner)),
        gate_(std::move(gate)),
        see_(std::move(see)),
        meet_(std::move(meet)) {
    inner_->SetHandler(this);
  }
  void SetHandler(PeerHandler* handler) override { handler_ = handler; }
  std::string address() const override { return inner_->address(); }
  void Connect(const Member& peer) override { inner_->Connect(peer); }
  void Disconnect(const LearnerId& peer) override { inner_->Disconnect(peer); }
  bool Connected(const LearnerId& peer) const override { return inner_->Connected(peer); }
  void Send(const LearnerId& peer, Frame frame) override {
    see_(peer, frame, /*sent=*/true);
    inner_->Send(peer, std::move(frame));
  }

 private:
  void OnPeerConnected(const LearnerId& peer) override;
  void OnFrame(const LearnerId& peer, Frame frame) override;
  void OnPeerLost(const LearnerId& peer, const PeerLoss& loss) override;

  const std::unique_ptr<PeerTransport> inner_;
  const std::shared_ptr<Gate> gate_;
  const See see_;
  const Meet meet_;
  PeerHandler* handler_ = nullptr;
};

// A Program on virtual time. `on_shard` sees every shard that it computed, `check` the program
// after every change of its state.
class SimCompute final : public Compute {
 public:
  SimCompute(EventLoop& loop, Program& program, int max_shards,
             std::function<Duration(std::size_t shards)> delay,
             std::function<void(const ShardTask&)> on_shard, std::function<void()> check);

  const ProgramInfo& info() const override { return program_.info(); }
  const StateDict& state_shape() const override { return shape_; }
  std::optional<ProgramCall> call() const override;  // of shards: all else takes no time
  void RunTick(TickWork work, Compute::OnPart on_part, DoneTick done) override;
  void AbortTick(std::function<void(TickOutput)> rest) override;
  void Commit(CommitWork work, DoneStatus done) override;
  void Evaluated(EvaluationTask evaluation, DoneStatus done) override;
  bool wants_end() const override { return program_.wants_end(); }
  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override;
  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override;

 private:
  struct Tick {
    std::uint64_t number = 0;
    TickWork work;
    Compute::OnPart on_part;
    DoneTick done;
    Result<TickOutput> output;
    std::vector<std::deque<NodePart>> parts;  // of each shard: not told yet
    std::size_t shards = 0;                   // computed until now
    bool given_up = false;
    std::function<void(TickOutput)> rest;
  };
  struct Operation {
    std::shared_ptr<Tick> tick;  // none: something else
    std::function<void()> work;
  };
  void Enqueue(Operation operation);
  void BeginNext();
  void EndOperation();
  void NextShard(const std::shared_ptr<Tick>& tick);
  // Tells a part of it after so long, then the next.
  void NextPart(const std::shared_ptr<Tick>& tick, Duration every);
  // The first `shards` of them.
  using OnPart = std::function<void(std::size_t shard, const NodePart& part)>;
  TickOutput Run(const Tick& tick, std::size_t shards, const OnPart& on_part);

  EventLoop& loop_;
  Program& program_;
  const StateDict shape_;
  const std::function<Duration(std::size_t shards)> delay_;
  const std::function<void(const ShardTask&)> on_shard_;
  const std::function<void()> check_;
  GradientAccumulator accumulator_;
  BytePool buffers_{0};          // what is given back is not used again, so that its readers show
  std::deque<Operation> queue_;  // the front one runs
  std::uint64_t ticks_ = 0;      // asked for until now
};

}  // namespace pliant::sim
