#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mailbox.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/run_shards.h"

namespace pliant {
namespace {

// The loop hands one operation at a time to the thread, so that what the loop prepares for a tick
// (ShardFolder::Begin) never meets the tick before it.
class ThreadedCompute final : public Compute {
 public:
  ThreadedCompute(EventLoop& loop, Program& program, int logical_shards, int shards_most,
                  MemorySource& gradients)
      : loop_(loop),
        program_(program),
        info_(program.info()),
        shape_(program.State()),
        folder_(logical_shards, info_.gradient_elements, shards_most, gradients),
        thread_([this](const std::stop_token& stop) {
          while (auto work = work_.Take(stop)) (*work)();
        }) {}

  ~ThreadedCompute() override {
    abandoned_ = true;
    thread_.request_stop();
  }

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return shape_; }

  void RunTick(TickWork work, std::function<void(HeldNode)> on_node,
               Done<TickOutput> done) override {
    Enqueue(kTick, [this, work = std::move(work), on_node = std::move(on_node),
                    done = std::move(done)]() mutable {
      abandoned_ = false;
      if (work.kind == TickKind::kTrain) folder_.Begin(work.blocks);
      const std::uint64_t tick = running_;
      OnThread([this, tick, work = std::move(work), on_node = std::move(on_node),
                done = std::move(done)] {
        const auto post_node = [&](const HeldNode& node) {
          PostIfNotAbandoned(tick, [on_node, node] { on_node(node); });
        };
        Result<TickOutput> output = RunShards(program_, folder_, work, abandoned_, post_node);
        PostIfNotAbandoned(tick, [done, output = std::move(output)] { done(output); });
      });
    });
  }

  void AbandonTick() override {
    std::erase_if(queue_, [](const Operation& operation) { return operation.kind == kTick; });
    if (running_kind_ == kTick) {
      abandoned_ = true;
      abandoned_tick_ = running_;
    }
  }

  void Commit(CommitWork work, DoneStatus done) override {
    Enqueue(kOther, [this, work = std::move(work), done = std::move(done)]() mutable {
      OnThread([this, work = std::move(work), done = std::move(done)] {
        Status status = program_.Commit({.epoch = work.epoch,
                                         .step = work.step,
                                         .gradient = work.gradient,
                                         .buffers = work.buffers.view,
                                         .sums = work.sums});
        Post([done, status = std::move(status)] { done(status); });
      });
    });
  }

  void CopyState(Done<std::shared_ptr<const StateCopy>> done) override {
    Enqueue(kOther, [this, done = std::move(done)]() mutable {
      OnThread([this, done = std::move(done)] {
        auto copy = std::make_shared<const StateCopy>(StateCopy::Of(program_.State()));
        Post([done, copy = std::move(copy)] { done(copy); });
      });
    });
  }

  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override {
    Enqueue(kOther, [this, state = std::move(state), done = std::move(done)]() mutable {
      OnThread([this, state = std::move(state), done = std::move(done)] {
        Status status = pliant::CopyState(state->view(), program_.State());
        if (status) status = program_.LoadedState();
        Post([done, status = std::move(status)] { done(status); });
      });
    });
  }

 private:
  enum Kind { kNone, kTick, kOther };
  struct Operation {
    Kind kind = kNone;
    std::move_only_function<void()> begin;  // on the loop
  };

  // ---- On the loop's thread ----

  void Enqueue(Kind kind, std::move_only_function<void()> begin) {
    queue_.push_back({kind, std::move(begin)});
    if (running_kind_ == kNone) BeginNext();
  }

  void BeginNext() {
    running_kind_ = kNone;
    if (queue_.empty()) return;
    Operation next = std::move(queue_.front());
    queue_.pop_front();
    running_kind_ = next.kind;
    ++running_;
    next.begin();
  }

  void OnThread(std::function<void()> work) {
    work_.Put([this, work = std::move(work)] {
      work();
      Post([this] { BeginNext(); });
    });
  }

  // ---- On the compute thread ----

  // Not after this object is destroyed.
  void Post(std::function<void()> task) {
    loop_.Post([alive = std::weak_ptr(alive_), task = std::move(task)] {
      if (!alive.expired()) task();
    });
  }

  void PostIfNotAbandoned(std::uint64_t tick, std::function<void()> task) {
    Post([this, tick, task = std::move(task)] {
      if (abandoned_tick_ != tick) task();
    });
  }

  EventLoop& loop_;
  Program& program_;
  const ProgramInfo info_;
  const StateDict shape_;

  // Loop's thread only.
  std::deque<Operation> queue_;
  Kind running_kind_ = kNone;
  std::uint64_t running_ = 0;  // counts operations
  std::uint64_t abandoned_tick_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  // Handed over with each tick.
  ShardFolder folder_;

  std::atomic<bool> abandoned_ = false;  // the running tick is
  Mailbox<std::function<void()>> work_;  // synchronises itself
  std::jthread thread_;                  // last: joined before the rest is destroyed
};

}  // namespace

std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, Program& program, int logical_shards,
                                            int shards_most, MemorySource& gradients) {
  return std::make_unique<ThreadedCompute>(loop, program, logical_shards, shards_most, gradients);
}

}  // namespace pliant
