#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/exceptions.h"
#include "base/fifo.h"
#include "base/loop_bell.h"
#include "base/mailbox.h"
#include "trainer/collective/byte_pool.h"
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

// For the buffers that the model writes in a tick.
constexpr std::size_t kBuffersKeptBytes = std::size_t{64} << 20;

// The loop hands one operation at a time to the thread, so that what the loop prepares for a tick
// (ShardFolder::Begin) never meets the tick before it. A tick and a commit go to and fro in members
// that are used again.
class ThreadedCompute final : public Compute {
 public:
  ThreadedCompute(EventLoop& loop, Program& program, ShardFolder folder)
      : loop_(loop),
        program_(program),
        info_(program.info()),
        state_(program.State()),
        folder_(std::move(folder)),
        bell_(loop, [this] { OnBell(); }),
        copier_([this](const std::stop_token& stop) { Work(copies_wanted_, stop); }),
        thread_([this](const std::stop_token& stop) { Work(work_, stop); }) {}

  ~ThreadedCompute() override {
    control_.abandoned = true;
    thread_.request_stop();
    copier_.request_stop();
  }

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return state_; }

  std::optional<ProgramCall> call() const override {
    if (running_.kind == kCommit || running_.kind == kChange) return running_.call;
    if (running_.kind != kTick || running_.work.tasks.empty()) return std::nullopt;
    // What comes before the first is counted with it.
    const std::size_t begun = control_.begun.load(std::memory_order_relaxed);
    const ShardTask& task = running_.work.tasks[std::max<std::size_t>(begun, 1) - 1];
    const bool train = task.kind == TickKind::kTrain;
    return ProgramCall{.kind = train ? ProgramCall::Kind::kTrain : ProgramCall::Kind::kEvaluate,
                       .number = running_.call.number,
                       .step = task.step,
                       .shard = task.shard};
  }

  void RunTick(TickWork&& work, OnPart on_part, DoneTick done) override {
    Operation tick{.kind = kTick};
    tick.work = std::exchange(work, std::move(spare_work_));
    tick.on_part = std::move(on_part);
    tick.tick_done = std::move(done);
    Enqueue(std::move(tick));
  }

  void AbandonTick(std::function<void(TickOutput)> rest) override {
    for (std::size_t left = queue_.size(); left > 0; --left) {
      if (Operation operation = queue_.take_front(); operation.kind != kTick) {
        queue_.push_back(std::move(operation));
      }
    }
    if (running_.kind != kTick) {
      return Post([this, rest = std::move(rest)] {
        if (!forgotten_) rest({});
      });
    }
    CHECK(rest_ == nullptr, "a tick is given up once");
    control_.abandoned = true;
    rest_ = std::move(rest);
  }

  void Commit(CommitWork work, DoneStatus done) override {
    Operation commit{.kind = kCommit};
    commit.commit = std::move(work);
    commit.call = {.kind = ProgramCall::Kind::kCommit, .step = commit.commit.step};
    commit.done = std::move(done);
    Enqueue(std::move(commit));
  }

  void Evaluated(EvaluationTask evaluation, DoneStatus done) override {
    Operation change{.kind = kChange};
    change.call = {.kind = ProgramCall::Kind::kEvaluated, .step = evaluation.step};
    change.change = [this, evaluation] { return program_.Evaluated(evaluation); };
    change.done = std::move(done);
    Enqueue(std::move(change));
  }

  bool wants_end() const override { return wants_end_; }

  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override {
    Operation copy{.kind = kCopy};
    copy.copy = [this, slice, done = std::move(done)] {
      using Copy = std::shared_ptr<const StateCopy>;
      Result<Copy> made = CatchAll([&]() -> Result<Copy> {
        const std::shared_ptr<StateCopy> spare = spare_copy_->Take();
        spare->CopyFrom(SliceOf(state_, slice));
        return spare;
      });
      Post([this, done, made = std::move(made)]() mutable {
        --copies_running_;
        if (running_.kind == kNone) BeginNext();
        if (!forgotten_) done(std::move(made));
      });
    };
    Enqueue(std::move(copy));
  }

  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override {
    Operation change{.kind = kChange};
    change.call = {.kind = ProgramCall::Kind::kLoad};
    change.change = [this, state = std::move(state)]() mutable -> Status {
      // Let go of here: to give gigabytes back would hold the loop up.
      const std::shared_ptr<const StateCopy> given = std::exchange(state, nullptr);
      RETURN_IF_ERROR(pliant::CopyState(given->view(), program_.State()));
      return program_.LoadedState();
    };
    change.done = std::move(done);
    Enqueue(std::move(change));
  }

  void ForgetCallbacks() override { forgotten_ = true; }

 private:
  enum Kind { kNone, kTick, kTickOver, kCopy, kCommit, kChange };
  struct Operation {
    Kind kind = kNone;
    ProgramCall call = {};  // of a tick only its number
    // kTick
    TickWork work = {};
    OnPart on_part = nullptr;
    DoneTick tick_done = nullptr;
    // kCopy: on the thread of copies
    std::function<void()> copy = nullptr;
    // kCommit, kChange: on the compute thread
    CommitWork commit = {};
    std::function<Status()> change = nullptr;
    DoneStatus done = nullptr;
  };

  // ---- On the loop's thread ----

  void Enqueue(Operation operation) {
    queue_.push_back(std::move(operation));
    if (running_.kind == kNone) BeginNext();
  }

  void BeginNext() {
    running_.kind = kNone;
    if (queue_.empty()) return;
    const Kind next = queue_.front().kind;
    // A copy under way sees the state as it is now.
    if ((next == kCommit || next == kChange) && copies_running_ > 0) return;
    running_ = queue_.take_front();
    running_.call.number = ++operations_;
    if (next == kCopy) {
      ++copies_running_;
      copies_wanted_.Put(std::move(running_.copy));
      return BeginNext();
    }
    if (next == kTick) {
      control_.abandoned = false;
      control_.begun = 0;
      if (running_.work.kind == TickKind::kTrain) BeginFolding(running_.work);
    }
    work_.Put([this] { RunOnThread(); });
  }

  void BeginFolding(const TickWork& work) {
    folder_.Begin(work.logical_shards, work.blocks, work.buckets);
    // However late the loop comes to them.
    const std::size_t parts_most = work.blocks.size() * folder_.buckets().count();
    const std::lock_guard lock(mutex_);
    parts_.reserve(parts_most);
    parts_taken_.reserve(parts_most);
  }

  // Something was finished of the running operation, or all of it.
  void OnBell() {
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      parts_taken_.swap(parts_);
      over = std::exchange(over_, false);
    }
    for (const NodePart& part : parts_taken_) {
      if (rest_ == nullptr && !forgotten_) running_.on_part(part);
    }
    parts_taken_.clear();
    if (over) End();
  }

  // Who is told may destroy this object.
  void End() {
    const std::weak_ptr<bool> alive = alive_;
    if (running_.kind == kTick) {
      EndTick();
    } else {
      wants_end_ = ended_wanted_;
      running_.commit = {};  // what they read is of no use any more
      running_.change = nullptr;
      const DoneStatus done = std::move(running_.done);
      if (!forgotten_) done(std::move(result_));
    }
    if (!alive.expired()) BeginNext();
  }

  void EndTick() {
    const std::weak_ptr<bool> alive = alive_;
    running_.kind = kTickOver;  // nothing is left to be given up
    const DoneTick done = std::move(running_.tick_done);
    const std::function<void(TickOutput)> rest = std::exchange(rest_, nullptr);
    if (forgotten_) {
      // Nobody hears of it.
    } else if (rest != nullptr) {
      rest(std::move(*output_));
    } else if (!result_) {
      done(std::unexpected(std::move(result_).error()));
    } else {
      done(output_);
    }
    if (alive.expired()) return;
    output_->Clear();
    spare_work_ = std::move(running_.work);
  }

  // ---- On the threads of compute and of copies ----

  static void Work(Mailbox<std::function<void()>>& work, const std::stop_token& stop) {
    EndOnException("computation", [&] {
      while (auto task = work.Take(stop)) (*task)();
    });
  }

  // ---- On the compute thread, or the one that it has the program's work done by ----

  void RunOnThread() {
    result_ = CatchAll([this] { return RunOperation(); });
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    bell_.Ring();
  }

  Status RunOperation() {
    if (running_.kind == kTick) {
      return RunShards(
          program_, folder_, buffers_, running_.work, control_,
          [this](NodePart part) { HandOver(std::move(part)); }, *output_);
    }
    Status done = running_.kind == kCommit ? CommitOnThread(running_.commit) : running_.change();
    ended_wanted_ = program_.wants_end();
    return done;
  }

  Status CommitOnThread(const CommitWork& work) {
    return program_.Commit({.epoch = work.epoch,
                            .step = work.step,
                            .gradient = work.gradient,
                            .buffers = work.buffers.view,
                            .sums = work.sums});
  }

  void HandOver(NodePart part) {
    if (control_.abandoned) return;
    {
      const std::lock_guard lock(mutex_);
      parts_.push_back(std::move(part));
    }
    bell_.Ring();
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
  Fifo<Operation> queue_;
  std::uint64_t operations_ = 0;  // begun until now
  int copies_running_ = 0;
  bool wants_end_ = false;
  bool forgotten_ = false;
  std::function<void(TickOutput)> rest_;  // of the tick that was given up, until it ends
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::vector<NodePart> parts_taken_;
  TickWork spare_work_;

  // Handed over with each operation, and back when it is over.
  Operation running_;
  ShardFolder folder_;
  BytePool buffers_{kBuffersKeptBytes};
  Result<TickOutput> output_;  // a value
  Status result_;
  bool ended_wanted_ = false;  // the program wants it, after the change

  std::mutex mutex_;
  std::vector<NodePart> parts_;  // guarded by mutex_
  bool over_ = false;            // guarded by mutex_

  // Copies may outlive this object.
  const std::shared_ptr<SpareCopy> spare_copy_ = std::make_shared<SpareCopy>();

  TickControl control_;  // of the running tick
  // Synchronise themselves.
  LoopBell bell_;
  Mailbox<std::function<void()>> work_;
  Mailbox<std::function<void()>> copies_wanted_;
  // Last: joined before the rest is destroyed.
  std::jthread copier_;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, Program& program, ShardFolder folder) {
  return std::make_unique<ThreadedCompute>(loop, program, std::move(folder));
}

}  // namespace pliant
