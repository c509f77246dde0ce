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
#include "base/loop_notifier.h"
#include "base/overloaded.h"
#include "base/workers.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/runtime/change_stepper.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/device_memories.h"
#include "trainer/runtime/device_tick.h"
#include "trainer/runtime/host_tick.h"
#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/running_commit.h"
#include "trainer/runtime/shard_stepper.h"
#include "trainer/runtime/spare_copy.h"

namespace pliant {
namespace {

// The loop hands one operation at a time to the program's thread, so that what the loop prepares
// for a tick (GradientAccumulator::Begin) never overlaps with the previous tick.
class ThreadedCompute final : public Compute {
 public:
  ThreadedCompute(EventLoop& loop, ProgramThread& thread, GradientAccumulator accumulator,
                  MemorySource& sums)
      : loop_(loop),
        thread_(thread),
        program_(thread.program()),
        info_(program_.info()),
        state_(program_.State()),
        accumulator_(std::move(accumulator)),
        notifier_(loop, [this] { OnNotified(); }) {
    if (GradientDevice* const device = program_.gradient_device())
      on_device_.emplace(*device, info_.gradient_elements, sums);
  }

  ~ThreadedCompute() override { Stop(); }
  bool Stop() override {
    control_.abandoned = true;
    copier_.Stop();  // drops queued copies before either thread is waited for
    thread_.Stop();
    return !on_device_ || on_device_->device.Drain();
  }

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return state_; }

  bool keeps_gradients() const override { return on_device_.has_value(); }
  Communicators* communicators() override {
    return on_device_ ? on_device_->device.rounds() : nullptr;
  }

  std::optional<ProgramCall> call() const override {
    if (const auto* const change = std::get_if<Change>(&running_)) {
      return ProgramCall{.kind = change->kind, .number = operations_, .step = change->step};
    }
    const auto* const tick = std::get_if<RunningTick>(&running_);
    if (tick == nullptr) return std::nullopt;
    const TickWork& work = tick->asked.work;
    const bool train = work.kind == TickKind::kTrain;
    ProgramCall call{.kind = train ? ProgramCall::Kind::kTrain : ProgramCall::Kind::kEvaluate,
                     .number = operations_,
                     .step = work.step};
    // Work after the last shard counts as that shard. Without shards the tick must still be
    // fetched.
    const std::size_t done = control_.done.load(std::memory_order_relaxed);
    if (!work.tasks.empty()) call.shard = work.tasks[std::min(done, work.tasks.size() - 1)].shard;
    return call;
  }

  void RunTick(TickWork work, TickCalls calls) override {
    Enqueue(AskedTick{.work = std::move(work), .calls = std::move(calls)});
  }

  void AbortTick(std::function<void(TickOutput)> rest) override {
    std::erase_if(queue_,
                  [](const Asked& queued) { return std::holds_alternative<AskedTick>(queued); });
    if (const auto* const tick = std::get_if<RunningTick>(&running_)) {
      CHECK(rest_ == nullptr, "a tick is aborted once");
      control_.abandoned = true;
      rest_ = std::move(rest);
      // Without the others its rounds would not end.
      if (tick->has_rounds()) communicators()->Abort([] {});
      return;
    }
    if (ending_) {
      ending_->done = WhatIsThere(std::move(rest));
      return;
    }
    if (!whole_ || !idle()) return Post([rest = std::move(rest)] { rest({}); });
    exchanged_ = nullptr;
    if (exchanging_) communicators()->Abort([] {});
    HandOut(*std::exchange(whole_, std::nullopt), WhatIsThere(std::move(rest)));
  }

  void Commit(CommitWork work, Done<CommitOutput> done) override {
    const std::uint64_t step = work.step;
    const auto running = std::make_shared<RunningCommit>(std::move(work));
    Enqueue(Change{.kind = ProgramCall::Kind::kCommit,
                   .step = step,
                   .stepper = NewChange([this, running] {
                     if (!on_device_) return running->Begin(accumulator_.cells(), nullptr);
                     const DeviceTick::Memory device = on_device_->ForTick();
                     return running->Begin(accumulator_.cells(), &device);
                   }),
                   .commit = running,
                   .done = [running, done = std::move(done)](Status status) {
                     if (!status) return done(std::unexpected(std::move(status).error()));
                     done(running->output());
                   }});
  }

  void Evaluated(EvaluationTask evaluation, DoneStatus done) override {
    Enqueue(Change{.kind = ProgramCall::Kind::kEvaluated,
                   .step = evaluation.step,
                   .stepper = NewChange([evaluation] { return evaluation; }),
                   .done = std::move(done)});
  }

  bool wants_end() const override { return wants_end_; }

  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override {
    Copy copy;
    copy.run = [this, slice, done = std::move(done)] {
      using Made = std::shared_ptr<const StateCopy>;
      Result<Made> made = CatchAll([&]() -> Result<Made> {
        const std::shared_ptr<StateCopy> spare = spare_copy_->Take();
        RETURN_IF_ERROR(spare->CopyFrom(SliceOf(state_, slice)));
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
    auto begin = [this, state = std::move(state)]() mutable -> Result<Work> {
      // Released on this thread: freeing gigabytes would block the loop.
      const std::shared_ptr<const StateCopy> given = std::exchange(state, nullptr);
      RETURN_IF_ERROR(pliant::CopyState(given->view(), program_.State()));
      return LoadedWork{};
    };
    Enqueue(Change{.kind = ProgramCall::Kind::kLoad,
                   .stepper = NewChange(std::move(begin)),
                   .done = std::move(done)});
  }

 private:
  struct AskedTick {
    TickWork work;
    TickCalls calls;
  };
  // A tick that is over. Its result waits until its memory is no longer in use by an exchange, and
  // its nodes are copied.
  struct Ending {
    Result<TickOutput> output;
    DoneTick done;
  };
  struct RunningTick {
    RunningTick(ThreadedCompute& compute, AskedTick tick)
        : asked(std::move(tick)),
          side(compute.NewSide(asked.work)),
          stepper(compute.program_, compute.accumulator_, asked.work, compute.control_, *side) {}

    bool has_rounds() const {
      return asked.work.device_step && asked.work.device_step->rounds != nullptr;
    }

    AskedTick asked;
    std::unique_ptr<TickSide> side;
    ShardStepper stepper;  // both work on `asked`
  };
  // Runs on the copier's thread.
  struct Copy {
    std::function<void()> run;
  };
  // A change of the state, on the program's thread.
  struct Change {
    ProgramCall::Kind kind = ProgramCall::Kind::kCommit;
    std::uint64_t step = 0;
    std::unique_ptr<ChangeStepper> stepper;
    std::shared_ptr<RunningCommit> commit = nullptr;
    DoneStatus done = nullptr;
  };
  using Asked = std::variant<AskedTick, Copy, Change>;

  struct Idle {};
  struct TickOver {};  // the tick's callback runs
  using Running = std::variant<Idle, RunningTick, TickOver, Change>;

  // ---- On the loop's thread ----

  static std::unique_ptr<ChangeStepper> NewChange(std::function<Result<Work>()> begin) {
    return std::make_unique<ChangeStepper>(std::move(begin));
  }

  template <typename T>
  void Enqueue(T operation) {
    queue_.emplace_back(std::move(operation));
    if (idle()) BeginNext();
  }

  bool idle() const { return std::holds_alternative<Idle>(running_); }

  void BeginNext() {
    running_ = Idle{};
    if (queue_.empty()) return;
    // A running copy must see the state as it is now.
    if (std::holds_alternative<Change>(queue_.front()) && copies_running_ > 0) return;
    Asked next = std::move(queue_.front());
    queue_.pop_front();
    ++operations_;
    std::visit(Overloaded{[this](AskedTick& tick) { Begin(std::move(tick)); },
                          [this](Copy& copy) { Begin(std::move(copy)); },
                          [this](Change& change) { Begin(std::move(change)); }},
               next);
  }

  void Begin(AskedTick tick) {
    CHECK(!exchanging_, "an exchange still reads the sums of the tick before");
    whole_.reset();
    control_.abandoned = false;
    control_.done = 0;
    if (tick.work.kind == TickKind::kTrain) {
      accumulator_.Begin(tick.work.logical_shards, tick.work.blocks, tick.work.buckets,
                         tick.work.measure);
    }
    RunningTick& running = running_.emplace<RunningTick>(*this, std::move(tick));
    thread_.Run(running.stepper, [this, &running](Status stepped) {
      EndOnException("computation", [&] {
        result_ =
            CatchAll([&] { return stepped ? running.stepper.End(output_) : std::move(stepped); });
        if (!on_device_) return Over();
        GradientRounds* const rounds = running.side->rounds();
        // Some bucket is missing: they would not end.
        if (rounds != nullptr && !result_) rounds->Abort([] {});
        on_device_->device.Then(
            [this, &running](const Status& computed) { OverOnDevice(running, computed); });
      });
    });
  }

  void Begin(Copy copy) {
    ++copies_running_;
    copier_.Run(std::move(copy.run));
    BeginNext();
  }

  void Begin(Change change) {
    whole_.reset();
    const Change& running = running_.emplace<Change>(std::move(change));
    thread_.Run(*running.stepper, [this, &running](Status stepped) {
      EndOnException("computation", [&] {
        result_ = CatchAll([&] {
          ended_wanted_ = program_.wants_end();
          return stepped ? running.stepper->status() : std::move(stepped);
        });
        if (on_device_ && running.commit) return EndCommitOnDevice(running.commit);
        Over();
      });
    });
  }

  // A part of the running operation is finished, or all of it.
  void OnNotified() {
    bool over = false;
    std::vector<NodePart> parts;
    {
      const std::lock_guard lock(mutex_);
      parts.swap(parts_);
      over = std::exchange(over_, false);
    }
    for (const NodePart& part : parts) {
      const auto* const tick = std::get_if<RunningTick>(&running_);
      if (tick != nullptr && rest_ == nullptr) tick->asked.calls.on_part(part);
    }
    if (over) End();
  }

  // The callback may destroy this object.
  void End() {
    const Lifetime::Watch watch = lifetime_.watch();
    if (auto* const tick = std::get_if<RunningTick>(&running_)) {
      EndTick(std::move(tick->asked.calls), tick->side->rounds());
    } else {
      auto& change = std::get<Change>(running_);
      wants_end_ = ended_wanted_;
      const DoneStatus done = std::move(change.done);
      done(std::move(result_));
    }
    if (!watch.over() && !ending_) BeginNext();
  }

  // `rounds`: those of the tick; nullptr: none.
  void EndTick(TickCalls calls, GradientRounds* rounds) {
    running_ = TickOver{};  // nothing is left to abort
    exchanging_ = rounds != nullptr;
    if (exchanging_) {
      rounds->WhenOver([this](Status exchanged) {
        Post([this, exchanged = std::move(exchanged)] { OnExchangeOver(exchanged); });
      });
    }
    const std::function<void(TickOutput)> rest = std::exchange(rest_, nullptr);
    TickOutput output = std::exchange(output_, {});
    if (rest != nullptr) return HandOut(std::move(output), WhatIsThere(rest));
    if (!result_)
      return HandOut(std::unexpected(std::move(result_).error()), std::move(calls.done));
    if (output.mean) whole_ = output;
    if (exchanging_) exchanged_ = std::move(calls.exchanged);
    calls.done(std::move(output));
  }

  void OnExchangeOver(const Status& exchanged) {
    exchanging_ = false;
    if (ending_) return ending_->output && ending_->output->mean ? CopyNodes() : EndEnding();
    if (exchanged_ != nullptr) std::exchange(exchanged_, nullptr)(exchanged);
  }

  // Nothing, if nothing could be saved.
  static DoneTick WhatIsThere(std::function<void(TickOutput)> rest) {
    return [rest = std::move(rest)](const Result<TickOutput>& saved) {
      rest(saved ? *saved : TickOutput());
    };
  }

  // Gives the output to `done`, at once if nothing of it is awaited; instead of its mean its nodes.
  void HandOut(Result<TickOutput> output, DoneTick done) {
    const bool whole = output && output->mean;
    if (!exchanging_ && !whole) return done(std::move(output));
    running_ = TickOver{};
    ending_ = Ending{.output = std::move(output), .done = std::move(done)};
    if (!exchanging_) CopyNodes();
  }

  void CopyNodes() {
    TickOutput& output = *ending_->output;
    output.mean = {};
    DeviceTick::CopyNodes(accumulator_, on_device_->ForTick(), output.nodes);
    on_device_->device.Then([this](Status copied) {
      Post([this, copied = std::move(copied)] {
        if (!copied) ending_->output = std::unexpected(copied.error());
        EndEnding();
      });
    });
  }

  // The callback may destroy this object.
  void EndEnding() {
    const Lifetime::Watch watch = lifetime_.watch();
    const Ending ending = *std::exchange(ending_, std::nullopt);
    ending.done(ending.output);
    if (!watch.over()) BeginNext();
  }

  // ---- On the program's thread ----

  // The program's work on the commit is queued. If nothing of the device is awaited, this only
  // keeps the commit's memory until the device has used it.
  void EndCommitOnDevice(const std::shared_ptr<RunningCommit>& commit) {
    commit->Release();
    const bool awaited = commit->awaited();
    on_device_->device.Then([this, commit, awaited](Status done) {
      if (!awaited) return;
      if (done) {
        commit->Complete();
      } else {
        result_ = std::move(done);
      }
      Over();
    });
    if (!awaited) Over();
  }

  std::unique_ptr<TickSide> NewSide(const TickWork& work) {
    auto on_part = [this](NodePart part) { HandOver(std::move(part)); };
    if (on_device_)
      return std::make_unique<DeviceTick>(on_device_->ForTick(), accumulator_, work, control_,
                                          std::move(on_part));
    return std::make_unique<HostTick>(accumulator_, buffers_, work, control_, std::move(on_part));
  }

  // The device's threads: the tick is computed.
  void OverOnDevice(RunningTick& running, const Status& computed) {
    if (computed) {
      running.side->Complete(output_);
    } else {
      output_ = {};
      result_ = computed;
    }
    Over();
  }

  // Any thread: the running operation is over, with result_.
  void Over() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    notifier_.Notify();
  }

  void HandOver(NodePart part) {
    if (control_.abandoned) return;
    {
      const std::lock_guard lock(mutex_);
      parts_.push_back(std::move(part));
    }
    notifier_.Notify();
  }

  // Does nothing after this object is destroyed.
  void Post(std::function<void()> task) { loop_.Post(lifetime_.Guard(std::move(task))); }

  EventLoop& loop_;
  ProgramThread& thread_;
  ProgramView& program_;
  const ProgramInfo info_;
  const StateDict state_;  // borrowed from the program, for its life

  // Loop's thread only.
  std::deque<Asked> queue_;
  std::uint64_t operations_ = 0;  // begun so far
  int copies_running_ = 0;
  bool wants_end_ = false;
  std::function<void(TickOutput)> rest_;  // of the aborted tick, until that ends
  std::optional<TickOutput> whole_;       // the last operation: a whole step, not committed
  bool exchanging_ = false;               // the rounds of the last tick are not over
  DoneStatus exchanged_;                  // of that tick, if it was not aborted
  std::optional<Ending> ending_;
  const Lifetime lifetime_;

  // Handed to the program's thread with each operation, and back when that is over. With a device
  // its last stop is the thread of Then.
  Running running_;
  GradientAccumulator accumulator_;
  BytePool buffers_{kTickBytesKept};
  std::optional<DeviceMemories> on_device_;  // none: the gradients are in host memory
  TickOutput output_;
  Status result_;
  bool ended_wanted_ = false;  // the program's wants_end after the change

  std::mutex mutex_;
  std::vector<NodePart> parts_;  // guarded by mutex_
  bool over_ = false;            // guarded by mutex_

  // Copies may outlive this object.
  const std::shared_ptr<SpareCopy> spare_copy_ = std::make_shared<SpareCopy>();

  TickControl control_;  // of the running tick
  // Synchronise themselves.
  LoopNotifier notifier_;
  Workers copier_{"copies of the state"};  // last: it uses the rest
};

}  // namespace

std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, ProgramThread& thread,
                                            GradientAccumulator accumulator, MemorySource& sums) {
  return std::make_unique<ThreadedCompute>(loop, thread, std::move(accumulator), sums);
}

}  // namespace pliant
