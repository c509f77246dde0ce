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
#include "tests/simulation/rounds_network.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/coordinator_link.h"

// The parts of a simulated process. Everything that happens to the process goes through its gate.
namespace pliant::sim {

// A stopped process (SIGSTOP, a hung machine) does nothing, and runs everything that waited when it
// resumes. A dead process has no gate and does nothing.
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

// Delays tasks and timers by what `late` draws, as if they queued behind the frames of one socket
// read. Only tasks that were posted for immediate execution keep their order.
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
  TimePoint posted_last_{};  // when the last immediate task is due
};

// Calls `see` with each frame sent (it may change the frame) and received, and `meet` for every new
// connection.
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

// Runs a Program on virtual time. It calls `on_shard` with every computed shard, and `check` after
// every change of the program's state.
class SimCompute final : public Compute {
 public:
  SimCompute(EventLoop& loop, Program& program, int max_shards,
             std::function<Duration(std::size_t shards)> delay,
             std::function<void(const ShardTask&)> on_shard, std::function<void()> check);

  // As with a device: a step that this learner computes alone is handed over as its mean only.
  bool keeps_means_too = false;
  // Then: its part in the exchange with other such learners. Borrowed; nullptr: none.
  SimRounds* rounds = nullptr;

  Communicators* communicators() override { return rounds; }
  bool keeps_means() const override { return keeps_means_too; }
  const ProgramInfo& info() const override { return program_.info(); }
  const StateDict& state_shape() const override { return shape_; }
  std::optional<ProgramCall> call() const override;  // only while it computes a shard: other calls
                                                     // take no time
  void RunTick(TickWork work, TickCalls calls) override;
  void AbortTick(std::function<void(TickOutput)> rest) override;
  void Commit(CommitWork work, Done<CommitOutput> done) override;
  void Evaluated(EvaluationTask evaluation, DoneStatus done) override;
  ProgramWishes wishes() const override { return program_.wishes(); }
  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override;
  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override;

 private:
  struct Tick {
    std::uint64_t number = 0;
    TickWork work;
    TickCalls calls;
    Result<TickOutput> output;
    std::vector<std::deque<NodePart>> parts;  // per shard: parts not yet reported
    std::size_t shards = 0;                   // computed so far
    bool ticks_aborted = false;
    bool exchanging = false;
    std::function<void(TickOutput)> rest;
  };
  struct Operation {
    std::shared_ptr<Tick> tick;  // null: another operation
    std::function<void()> work;
  };
  void Enqueue(Operation operation);
  void BeginNext();
  void EndOperation();
  void NextShard(const std::shared_ptr<Tick>& tick);
  // Reports one part after the time `every`, then the next.
  void NextPart(const std::shared_ptr<Tick>& tick, Duration every);
  // Computes the first `shards` shards of the tick.
  using OnPart = std::function<void(std::size_t shard, const NodePart& part)>;
  TickOutput Run(const Tick& tick, std::size_t shards, const OnPart& on_part);
  void EndTick(const std::shared_ptr<Tick>& tick);
  void Exchange(const std::shared_ptr<Tick>& tick);
  // The finished part of an aborted tick.
  TickOutput RestOf(const Tick& tick);

  EventLoop& loop_;
  Program& program_;
  const StateDict shape_;
  const std::function<Duration(std::size_t shards)> delay_;
  const std::function<void(const ShardTask&)> on_shard_;
  const std::function<void()> check_;
  GradientAccumulator accumulator_;
  BytePool buffers_{0};          // released buffers are not reused, so that a late reader is
                                 // detected
  std::deque<Operation> queue_;  // the front operation runs
  std::uint64_t ticks_ = 0;      // requested so far
  std::shared_ptr<Tick> whole_;  // a whole step that is computed and not committed
};

}  // namespace pliant::sim
