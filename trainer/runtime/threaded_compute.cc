#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/exceptions.h"
#include "base/lifetime.h"
#include "base/loop_notifier.h"
#include "base/workers.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/runtime/change_stepper.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/computed_tick.h"
#include "trainer/runtime/gradient_place.h"
#include "trainer/runtime/operation_queue.h"
#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/shard_stepper.h"
#include "trainer/runtime/spare_copy.h"

namespace pliant {
namespace {

// The loop hands one operation at a time to the program's thread, so that what the loop prepares
// for a tick (GradientAccumulator::Begin) never overlaps with the previous tick.
class ThreadedCompute final : public Compute {
 public:
  ThreadedCompute(EventLoop& loop, ProgramThread& thread, std::unique_ptr<GradientPlace> place)
      : loop_(loop),
        thread_(thread),
        program_(thread.program()),
        info_(program_.info()),
        state_(program_.State()),
        place_(std::move(place)),
        notifier_(loop, [this] { OnNotified(); }) {}

  ~ThreadedCompute() override { Stop(); }
  bool Stop() override {
    control_.abandoned = true;
    copier_.Stop();  // drops queued copies before either thread is waited for
    thread_.Stop();
    return place_->Drain();
  }

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return state_; }
  bool keeps_means() const override { return place_->keeps_means(); }
  Communicators* communicators() override { return place_->communicators(); }

  std::optional<ProgramCall> call() const override {
    if (const auto* const change = std::get_if<Change>(&running_)) {
      return ProgramCall{.kind = change->kind, .number = queue_.begun(), .step = change->step};
    }
    const auto* const tick = std::get_if<RunningTick>(&running_);
    if (tick == nullptr) return std::nullopt;
    const TickWork& work = tick->work;
    const bool train = work.kind == TickKind::kTrain;
    ProgramCall call{.kind = train ? ProgramCall::Kind::kTrain : ProgramCall::Kind::kEvaluate,
                     .number = queue_.begun(),
                     .step = work.step};
    // Work after the last shard counts as that shard. Without shards the tick must still be
    // fetched.
    const std::size_t done = control_.done.load(std::memory_order_relaxed);
    if (!work.tasks.empty()) call.shard = work.tasks[std::min(done, work.tasks.size() - 1)].shard;
    return call;
  }

  void RunTick(TickWork work, TickCalls calls) override {
    Enqueue(Kind::kTick, [this, work = std::move(work), calls = std::move(calls)]() mutable {
      BeginTick(std::move(work), std::move(calls));
    });
  }

  void AbortTick(std::function<void(TickOutput)> rest) override {
    queue_.DropTicks();
    if (const auto* const tick = std::get_if<RunningTick>(&running_)) {
      CHECK(rest_ == nullptr, "a tick is aborted once");
      control_.abandoned = true;
      rest_ = std::move(rest);
      tick->side->AbortExchange();
    } else if (computed_.saving()) {
      computed_.Redirect(NodesOrNothing(std::move(rest)));
    } else if (computed_.kept() && idle()) {
      computed_.SaveKept(NodesOrNothing(std::move(rest)));
    } else {
      Post([rest = std::move(rest)] { rest({}); });
    }
  }

  void Commit(CommitWork work, Done<CommitOutput> done) override {
    const auto commit = std::make_shared<RunningCommit>();
    commit->work = std::move(work);
    Change change{.kind = ProgramCall::Kind::kCommit,
                  .step = commit->work.step,
                  .end = [this, commit](auto ended) { place_->End(commit, std::move(ended)); },
                  .done =
                      [commit, done = std::move(done)](Status status) {
                        if (!status) return done(std::unexpected(std::move(status).error()));
                        done(commit->output);
                      }};
    Enqueue(std::move(change), [this, commit]() -> Result<Work> {
      place_->Begin(*commit);
      return TaskOf(*commit);
    });
  }

  void Evaluated(EvaluationTask evaluation, DoneStatus done) override {
    Change change{
        .kind = ProgramCall::Kind::kEvaluated, .step = evaluation.step, .done = std::move(done)};
    Enqueue(std::move(change), [evaluation]() -> Result<Work> { return evaluation; });
  }

  bool wants_end() const override { return wants_end_; }

  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override {
    Enqueue(Kind::kCopy, [this, slice, done = std::move(done)] {
      copier_.Run([this, slice, done] {
        using Made = std::shared_ptr<const StateCopy>;
        Result<Made> made = CatchAll([&]() -> Result<Made> {
          const std::shared_ptr<StateCopy> spare = spare_copy_->Take();
          RETURN_IF_ERROR(spare->CopyFrom(SliceOf(state_, slice)));
          return spare;
        });
        Post([this, done, made = std::move(made)]() mutable {
          queue_.OnCopied();
          BeginNext();
          done(std::move(made));
        });
      });
    });
  }

  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override {
    auto begin = [this, state = std::move(state)]() mutable -> Result<Work> {
      // Released on this thread: freeing gigabytes would block the loop.
      const std::shared_ptr<const StateCopy> given = std::exchange(state, nullptr);
      RETURN_IF_ERROR(pliant::CopyState(given->view(), program_.State()));
      return LoadedWork{};
    };
    Enqueue(Change{.kind = ProgramCall::Kind::kLoad, .done = std::move(done)}, std::move(begin));
  }

 private:
  using Kind = OperationQueue::Kind;
  struct RunningTick {
    RunningTick(ThreadedCompute& compute, TickWork asked, TickCalls to_call)
        : work(std::move(asked)),
          calls(std::move(to_call)),
          side(compute.place_->NewTick(
              work, compute.control_,
              [&compute](NodePart part) { compute.HandOver(std::move(part)); })),
          stepper(compute.program_, compute.place_->accumulator(), work, compute.control_, *side) {}

    TickWork work;
    TickCalls calls;
    std::unique_ptr<TickSide> side;
    ShardStepper stepper;
  };
  // A change of the state, on the program's thread.
  struct Change {
    using Ended = std::function<void(const Status&)>;

    ProgramCall::Kind kind = ProgramCall::Kind::kCommit;
    std::uint64_t step = 0;
    std::unique_ptr<ChangeStepper> stepper = nullptr;
    std::function<void(Ended)> end = nullptr;  // what is left when the program has done it
    DoneStatus done;
  };

  struct Idle {};
  struct TickOver {};  // the tick's callback runs
  using Running = std::variant<Idle, RunningTick, TickOver, Change>;

  // ---- On the loop's thread ----

  void Enqueue(Kind kind, OperationQueue::Begin begin) {
    queue_.Add(kind, std::move(begin));
    BeginNext();
  }
  void Enqueue(Change change, std::function<Result<Work>()> begin) {
    change.stepper = std::make_unique<ChangeStepper>(std::move(begin));
    Enqueue(Kind::kChange,
            [this, change = std::move(change)]() mutable { BeginChange(std::move(change)); });
  }

  bool idle() const { return std::holds_alternative<Idle>(running_) && !computed_.saving(); }

  void BeginNext() {
    while (idle()) {
      std::optional<OperationQueue::Begin> next = queue_.Next();
      if (!next) return;
      (*next)();
    }
  }

  void BeginTick(TickWork work, TickCalls calls) {
    CHECK(!computed_.exchanging(), "an exchange still reads the sums of the tick before");
    computed_.Forget();
    control_.abandoned = false;
    control_.done = 0;
    if (work.kind == TickKind::kTrain) {
      place_->accumulator().Begin(work.logical_shards, work.blocks, work.buckets, work.measure);
    }
    auto& tick = running_.emplace<RunningTick>(*this, std::move(work), std::move(calls));
    thread_.Run(tick.stepper, [this, &tick](Status stepped) {
      EndOnException("computation", [&] {
        result_ =
            CatchAll([&] { return stepped ? tick.stepper.End(output_) : std::move(stepped); });
        if (!result_) tick.side->AbortExchange();  // some bucket is missing: it would not end
        place_->Then([this, &tick](const Status& computed) { OnComputed(tick, computed); });
      });
    });
  }

  void BeginChange(Change change) {
    computed_.Forget();
    const Change& running = running_.emplace<Change>(std::move(change));
    thread_.Run(*running.stepper, [this, &running](Status stepped) {
      EndOnException("computation", [&] {
        result_ = CatchAll([&] {
          ended_wanted_ = program_.wants_end();
          return stepped ? running.stepper->status() : std::move(stepped);
        });
        if (running.end == nullptr) return Over();
        running.end([this](const Status& ended) {
          if (!ended) result_ = ended;
          Over();
        });
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
      if (tick != nullptr && rest_ == nullptr) tick->calls.on_part(part);
    }
    if (over) End();
  }

  // The callback may destroy this object.
  void End() {
    const Lifetime::Watch watch = lifetime_.watch();
    if (auto* const tick = std::get_if<RunningTick>(&running_)) {
      EndTick(std::move(tick->calls), tick->side->rounds());
    } else {
      auto& change = std::get<Change>(running_);
      wants_end_ = ended_wanted_;
      const DoneStatus done = std::move(change.done);
      done(std::move(result_));
    }
    if (watch.over()) return;
    running_ = Idle{};
    BeginNext();
  }

  // `rounds`: those of the tick; nullptr: none.
  void EndTick(TickCalls calls, GradientRounds* rounds) {
    running_ = TickOver{};  // nothing is left to abort
    computed_.Begin(rounds);
    const std::function<void(TickOutput)> rest = std::exchange(rest_, nullptr);
    TickOutput output = std::exchange(output_, {});
    if (rest != nullptr) return computed_.Save(std::move(output), NodesOrNothing(rest));
    if (!result_)
      return computed_.Save(std::unexpected(std::move(result_).error()), std::move(calls.done));
    if (output.mean) computed_.Keep(output, std::move(calls.exchanged));
    calls.done(std::move(output));
  }

  // Nothing, if the nodes could not be saved.
  static DoneTick NodesOrNothing(std::function<void(TickOutput)> rest) {
    return [rest = std::move(rest)](const Result<TickOutput>& saved) {
      rest(saved ? *saved : TickOutput());
    };
  }

  // ---- Any thread ----

  // All that the tick has queued is complete.
  void OnComputed(RunningTick& tick, const Status& computed) {
    if (computed) {
      tick.side->Complete(output_);
    } else {
      output_ = {};
      result_ = computed;
    }
    Over();
  }

  // The running operation is over, with result_.
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

  static CommitTask TaskOf(const RunningCommit& commit) {
    const CommitWork& work = commit.work;
    return {.epoch = work.epoch,
            .step = work.step,
            .schedule_step = work.schedule_step,
            .doublings = work.doublings,
            .last_of_epoch = work.last_of_epoch,
            .gradient = commit.gradient.view(),
            .buffers = work.buffers.view,
            .sums = work.sums};
  }

  EventLoop& loop_;
  ProgramThread& thread_;
  ProgramView& program_;
  const ProgramInfo info_;
  const StateDict state_;  // borrowed from the program, for its life
  const Lifetime lifetime_;

  // Handed to the program's thread with each operation, and back when that is over. With a device
  // its last stop is the thread of Then.
  Running running_;
  const std::unique_ptr<GradientPlace> place_;
  TickOutput output_;
  Status result_;
  bool ended_wanted_ = false;  // the program's wants_end after the change

  // Loop's thread only.
  OperationQueue queue_;
  bool wants_end_ = false;
  std::function<void(TickOutput)> rest_;  // of the aborted tick, until that ends
  ComputedTick computed_{*place_, [this](std::function<void()> task) { Post(std::move(task)); },
                         lifetime_.Guard([this] { BeginNext(); })};

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
                                            std::unique_ptr<GradientPlace> place) {
  return std::make_unique<ThreadedCompute>(loop, thread, std::move(place));
}

}  // namespace pliant
