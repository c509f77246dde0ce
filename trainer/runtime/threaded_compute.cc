#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mailbox.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/run_shards.h"

namespace pliant {
namespace {

// Memory for a copy of the state: the newest one that came back is used again, for fresh memory
// costs as much as the copy.
class SpareCopy : public std::enable_shared_from_this<SpareCopy> {
 public:
  std::shared_ptr<StateCopy> Take() {
    std::unique_ptr<StateCopy> copy;
    {
      const std::lock_guard lock(mutex_);
      copy = std::move(spare_);
    }
    if (!copy) copy = std::make_unique<StateCopy>();
    return {copy.release(), [self = shared_from_this()](StateCopy* back) {
              std::unique_ptr<StateCopy> owned(back);
              const std::lock_guard lock(self->mutex_);
              self->spare_.swap(owned);
            }};
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<StateCopy> spare_;  // guarded by mutex_
};

// The loop hands one operation at a time to the thread, so that what the loop prepares for a tick
// (ShardFolder::Begin) never meets the tick before it.
class ThreadedCompute final : public Compute {
 public:
  ThreadedCompute(EventLoop& loop, Program& program, int shards_most, MemorySource& gradients)
      : loop_(loop),
        program_(program),
        info_(program.info()),
        state_(program.State()),
        folder_(info_.gradient_elements, shards_most, gradients),
        copier_([this](const std::stop_token& stop) { Work(copies_wanted_, stop); }),
        thread_([this](const std::stop_token& stop) { Work(work_, stop); }) {}

  ~ThreadedCompute() override {
    abandoned_ = true;
    thread_.request_stop();
    copier_.request_stop();
  }

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return state_; }

  void RunTick(TickWork work, std::function<void(const NodePart&)> on_part,
               Done<TickOutput> done) override {
    Enqueue(kTick, [this, work = std::move(work), on_part = std::move(on_part),
                    done = std::move(done)]() mutable {
      abandoned_ = false;
      if (work.kind == TickKind::kTrain)
        folder_.Begin(work.logical_shards, work.blocks, work.buckets);
      on_part_ = std::move(on_part);
      const std::uint64_t tick = running_;
      OnThread([this, tick, work = std::move(work), done = std::move(done)]() mutable {
        const auto hand_over = [this](NodePart part) { HandOver(std::move(part)); };
        TickOutput output;
        Status status = RunShards(program_, folder_, work, abandoned_, hand_over, output);
        Post([this, tick, done = std::move(done), status = std::move(status),
              output = std::move(output)]() mutable {
          running_kind_ = kTickOver;  // nothing is left to be given up
          if (abandoned_tick_ == tick) return std::exchange(rest_, nullptr)(std::move(output));
          if (!status) return done(std::unexpected(std::move(status).error()));
          done(std::move(output));
        });
      });
    });
  }

  void AbandonTick(std::function<void(TickOutput)> rest) override {
    std::erase_if(queue_, [](const Operation& operation) { return operation.kind == kTick; });
    if (running_kind_ != kTick) return Post([rest = std::move(rest)] { rest({}); });
    CHECK(rest_ == nullptr, "a tick is given up once");
    abandoned_ = true;
    abandoned_tick_ = running_;
    rest_ = std::move(rest);
  }

  void Commit(CommitWork work, DoneStatus done) override {
    Enqueue(kChange, [this, work = std::move(work), done = std::move(done)]() mutable {
      OnThread([this, work = std::move(work), done = std::move(done)]() mutable {
        EndChange(program_.Commit({.epoch = work.epoch,
                                   .step = work.step,
                                   .gradient = work.gradient,
                                   .buffers = work.buffers.view,
                                   .sums = work.sums}),
                  std::move(done));
      });
    });
  }

  void Evaluated(EvaluationTask evaluation, DoneStatus done) override {
    Enqueue(kChange, [this, evaluation, done = std::move(done)]() mutable {
      OnThread([this, evaluation, done = std::move(done)]() mutable {
        EndChange(program_.Evaluated(evaluation), std::move(done));
      });
    });
  }

  bool wants_end() const override { return wants_end_; }

  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override {
    Enqueue(kCopy, [this, slice, done = std::move(done)]() mutable {
      ++copies_running_;
      copies_wanted_.Put([this, slice, done = std::move(done)] {
        std::shared_ptr<StateCopy> copy = spare_copy_->Take();
        copy->CopyFrom(SliceOf(state_, slice));
        Post([this, done, copy = std::shared_ptr<const StateCopy>(std::move(copy))]() mutable {
          --copies_running_;
          if (running_kind_ == kNone) BeginNext();
          done(std::move(copy));
        });
      });
      BeginNext();
    });
  }

  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override {
    Enqueue(kChange, [this, state = std::move(state), done = std::move(done)]() mutable {
      OnThread([this, state = std::move(state), done = std::move(done)]() mutable {
        Status status = pliant::CopyState(state->view(), program_.State());
        if (status) status = program_.LoadedState();
        EndChange(std::move(status), std::move(done));
      });
    });
  }

 private:
  enum Kind { kNone, kTick, kTickOver, kCopy, kChange };
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
    // A copy under way sees the state as it is now.
    if (queue_.front().kind == kChange && copies_running_ > 0) return;
    Operation next = std::move(queue_.front());
    queue_.pop_front();
    running_kind_ = next.kind;
    ++running_;
    next.begin();
  }

  // What was finished of the tick that runs. Those of the one before came before its end.
  void TakeParts() {
    {
      const std::lock_guard lock(parts_mutex_);
      parts_taken_.swap(parts_);
    }
    for (const NodePart& part : parts_taken_) {
      if (abandoned_tick_ != running_) on_part_(part);
    }
    parts_taken_.clear();
  }

  void OnThread(std::function<void()> work) {
    work_.Put([this, work = std::move(work)] {
      work();
      Post([this] { BeginNext(); });
    });
  }

  // ---- On the threads of compute and of copies ----

  static void Work(Mailbox<std::function<void()>>& work, const std::stop_token& stop) {
    while (auto task = work.Take(stop)) (*task)();
  }

  // ---- On the compute thread, or the one that it has the program's work done by ----

  // The state was changed.
  void EndChange(Status status, DoneStatus done) {
    Post([this, wants_end = program_.wants_end(), status = std::move(status),
          done = std::move(done)]() mutable {
      wants_end_ = wants_end;
      done(std::move(status));
    });
  }

  // The loop is woken once for what gathers until it comes to it.
  void HandOver(NodePart part) {
    if (abandoned_) return;
    bool first = false;
    {
      const std::lock_guard lock(parts_mutex_);
      first = parts_.empty();
      parts_.push_back(std::move(part));
    }
    if (first) Post([this] { TakeParts(); });
  }

  // Not after this object is destroyed.
  void Post(std::function<void()> task) {
    loop_.Post([alive = std::weak_ptr(alive_), task = std::move(task)] {
      if (!alive.expired()) task();
    });
  }

  EventLoop& loop_;
  Program& program_;
  const ProgramInfo info_;
  const StateDict state_;  // borrowed from the program, for its life

  // Loop's thread only.
  std::deque<Operation> queue_;
  Kind running_kind_ = kNone;
  std::uint64_t running_ = 0;  // counts operations
  std::uint64_t abandoned_tick_ = 0;
  int copies_running_ = 0;
  bool wants_end_ = false;
  std::function<void(TickOutput)> rest_;  // of the one that was given up, until it ends
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::function<void(const NodePart&)> on_part_;  // of the running tick
  std::vector<NodePart> parts_taken_;

  std::mutex parts_mutex_;
  std::vector<NodePart> parts_;  // guarded by parts_mutex_

  // Handed over with each tick.
  ShardFolder folder_;

  // Copies may outlive this object.
  const std::shared_ptr<SpareCopy> spare_copy_ = std::make_shared<SpareCopy>();

  std::atomic<bool> abandoned_ = false;  // the running tick is
  // Synchronise themselves.
  Mailbox<std::function<void()>> work_;
  Mailbox<std::function<void()>> copies_wanted_;
  // Last: joined before the rest is destroyed.
  std::jthread copier_;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, Program& program, int shards_most,
                                            MemorySource& gradients) {
  return std::make_unique<ThreadedCompute>(loop, program, shards_most, gradients);
}

}  // namespace pliant
