#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/exceptions.h"
#include "base/lifetime.h"
#include "base/loop_bell.h"
#include "base/overloaded.h"
#include "base/workers.h"
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
// (ShardFolder::Begin) never meets the tick before it.
class ThreadedCompute final : public Compute {
 public:
  ThreadedCompute(EventLoop& loop, Program& program, ShardFolder folder)
      : loop_(loop),
        program_(program),
        info_(program.info()),
        state_(program.State()),
        folder_(std::move(folder)),
        bell_(loop, [this] { OnBell(); }) {}

  ~ThreadedCompute() override {
    control_.abandoned = true;
    worker_.Stop();  // both, before either is waited for
    copier_.Stop();
  }

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return state_; }

  std::optional<ProgramCall> call() const override {
    if (const auto* const change = std::get_if<Change>(&running_)) {
      return ProgramCall{.kind = change->kind, .number = operations_, .step = change->step};
    }
    const auto* const tick = std::get_if<TickOperation>(&running_);
    if (tick == nullptr || tick->work.tasks.empty()) return std::nullopt;
    // What comes before the first is counted with it.
    const std::size_t begun = control_.begun.load(std::memory_order_relaxed);
    const ShardTask& task = tick->work.tasks[std::max<std::size_t>(begun, 1) - 1];
    const bool train = task.kind == TickKind::kTrain;
    return ProgramCall{.kind = train ? ProgramCall::Kind::kTrain : ProgramCall::Kind::kEvaluate,
                       .number = operations_,
                       .step = task.step,
                       .shard = task.shard};
  }

  void RunTick(TickWork work, OnPart on_part, DoneTick done) override {
    Enqueue(TickOperation{
        .work = std::move(work), .on_part = std::move(on_part), .done = std::move(done)});
  }

  void AbandonTick(std::function<void(TickOutput)> rest) override {
    std::erase_if(queue_, [](const Operation& queued) {
      return std::holds_alternative<TickOperation>(queued);
    });
    if (!std::holds_alternative<TickOperation>(running_)) {
      return Post([rest = std::move(rest)] { rest({}); });
    }
    CHECK(rest_ == nullptr, "a tick is given up once");
    control_.abandoned = true;
    rest_ = std::move(rest);
  }

  void Commit(CommitWork work, DoneStatus done) override {
    const std::uint64_t step = work.step;
    Enqueue(Change{.kind = ProgramCall::Kind::kCommit,
                   .step = step,
                   .run =
                       [this, work = std::move(work)] {
                         return program_.Commit({.epoch = work.epoch,
                                                 .step = work.step,
                                                 .gradient = work.gradient,
                                                 .buffers = work.buffers.view,
                                                 .sums = work.sums});
                       },
                   .done = std::move(done)});
  }

  void Evaluated(EvaluationTask evaluation, DoneStatus done) override {
    Enqueue(Change{.kind = ProgramCall::Kind::kEvaluated,
                   .step = evaluation.step,
                   .run = [this, evaluation] { return program_.Evaluated(evaluation); },
                   .done = std::move(done)});
  }

  bool wants_end() const override { return wants_end_; }

  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override {
    Copy copy;
    copy.run = [this, slice, done = std::move(done)] {
      using Made = std::shared_ptr<const StateCopy>;
      Result<Made> made = CatchAll([&]() -> Result<Made> {
        const std::shared_ptr<StateCopy> spare = spare_copy_->Take();
        spare->CopyFrom(SliceOf(state_, slice));
        return spare;
      });
      Post([this, done, made = std::move(made)]() mutable {
        --copies_running_;
        if (idle()) BeginNext();
        done(std::move(made));
      });
    };
    Enqueue(std::move(copy));
  }

  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override {
    Change change{.kind = ProgramCall::Kind::kLoad, .done = std::move(done)};
    change.run = [this, state = std::move(state)]() mutable -> Status {
      // Let go of here: to give gigabytes back would hold the loop up.
      const std::shared_ptr<const StateCopy> given = std::exchange(state, nullptr);
      RETURN_IF_ERROR(pliant::CopyState(given->view(), program_.State()));
      return program_.LoadedState();
    };
    Enqueue(std::move(change));
  }

 private:
  struct TickOperation {
    TickWork work;
    OnPart on_part;
    DoneTick done;
  };
  // On the thread of copies.
  struct Copy {
    std::function<void()> run;
  };
  // Of the state, on the compute thread.
  struct Change {
    ProgramCall::Kind kind = ProgramCall::Kind::kCommit;
    std::uint64_t step = 0;
    std::function<Status()> run = nullptr;
    DoneStatus done = nullptr;
  };
  using Operation = std::variant<TickOperation, Copy, Change>;

  struct Idle {};
  struct TickOver {};  // its callback runs
  using Running = std::variant<Idle, TickOperation, TickOver, Change>;

  // ---- On the loop's thread ----

  template <typename T>
  void Enqueue(T operation) {
    queue_.emplace_back(std::move(operation));
    if (idle()) BeginNext();
  }

  bool idle() const { return std::holds_alternative<Idle>(running_); }

  void BeginNext() {
    running_ = Idle{};
    if (queue_.empty()) return;
    // A copy under way sees the state as it is now.
    if (std::holds_alternative<Change>(queue_.front()) && copies_running_ > 0) return;
    Operation next = std::move(queue_.front());
    queue_.pop_front();
    ++operations_;
    std::visit(Overloaded{[this](TickOperation& tick) { Begin(std::move(tick)); },
                          [this](Copy& copy) { Begin(std::move(copy)); },
                          [this](Change& change) { Begin(std::move(change)); }},
               next);
  }

  void Begin(TickOperation tick) {
    control_.abandoned = false;
    control_.begun = 0;
    if (tick.work.kind == TickKind::kTrain) {
      folder_.Begin(tick.work.logical_shards, tick.work.blocks, tick.work.buckets);
    }
    const TickWork& work = running_.emplace<TickOperation>(std::move(tick)).work;
    worker_.Run([this, &work] {
      RunOnThread([&] {
        return RunShards(
            program_, folder_, buffers_, work, control_,
            [this](NodePart part) { HandOver(std::move(part)); }, output_);
      });
    });
  }

  void Begin(Copy copy) {
    ++copies_running_;
    copier_.Run(std::move(copy.run));
    BeginNext();
  }

  void Begin(Change change) {
    const std::function<Status()>& run = running_.emplace<Change>(std::move(change)).run;
    worker_.Run([this, &run] {
      RunOnThread([&] {
        Status done = run();
        ended_wanted_ = program_.wants_end();
        return done;
      });
    });
  }

  // Something was finished of the running operation, or all of it.
  void OnBell() {
    bool over = false;
    std::vector<NodePart> parts;
    {
      const std::lock_guard lock(mutex_);
      parts.swap(parts_);
      over = std::exchange(over_, false);
    }
    for (const NodePart& part : parts) {
      const auto* const tick = std::get_if<TickOperation>(&running_);
      if (tick != nullptr && rest_ == nullptr) tick->on_part(part);
    }
    if (over) End();
  }

  // Who is told may destroy this object.
  void End() {
    const Lifetime::Watch watch = lifetime_.watch();
    if (auto* const tick = std::get_if<TickOperation>(&running_)) {
      EndTick(std::move(tick->done));
    } else {
      auto& change = std::get<Change>(running_);
      wants_end_ = ended_wanted_;
      change.run = nullptr;  // what it reads is of no use any more
      const DoneStatus done = std::move(change.done);
      done(std::move(result_));
    }
    if (!watch.over()) BeginNext();
  }

  void EndTick(DoneTick done) {
    running_ = TickOver{};  // nothing is left to be given up
    const std::function<void(TickOutput)> rest = std::exchange(rest_, nullptr);
    TickOutput output = std::exchange(output_, {});
    if (rest != nullptr) {
      rest(std::move(output));
    } else if (!result_) {
      done(std::unexpected(std::move(result_).error()));
    } else {
      done(std::move(output));
    }
  }

  // ---- On the compute thread, or the one that it has the program's work done by ----

  void RunOnThread(const std::function<Status()>& run) {
    result_ = CatchAll(run);
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    bell_.Ring();
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
  void Post(std::function<void()> task) { loop_.Post(lifetime_.Guard(std::move(task))); }

  EventLoop& loop_;
  Program& program_;
  const ProgramInfo info_;
  const StateDict state_;  // borrowed from the program, for its life

  // Loop's thread only.
  std::deque<Operation> queue_;
  std::uint64_t operations_ = 0;  // begun until now
  int copies_running_ = 0;
  bool wants_end_ = false;
  std::function<void(TickOutput)> rest_;  // of the tick that was given up, until it ends
  const Lifetime lifetime_;

  // Handed over with each operation, and back when it is over.
  Running running_;
  ShardFolder folder_;
  BytePool buffers_{kBuffersKeptBytes};
  TickOutput output_;
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
  // Last: they use the rest.
  Workers copier_{"copies of the state"};
  Workers worker_{"computation"};
};

}  // namespace

std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, Program& program, ShardFolder folder) {
  return std::make_unique<ThreadedCompute>(loop, program, std::move(folder));
}

}  // namespace pliant
