#include "trainer/runtime/threaded_compute.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/exceptions.h"

namespace pliant {
namespace {

// Nothing, if the nodes could not be saved.
Compute::DoneTick NodesOrNothing(std::function<void(TickOutput)> rest) {
  return [rest = std::move(rest)](const Result<TickOutput>& saved) {
    rest(saved ? *saved : TickOutput());
  };
}

}  // namespace

ThreadedCompute::ThreadedCompute(EventLoop& loop, ProgramThread& thread,
                                 std::unique_ptr<GradientPlace> place)
    : loop_(loop),
      thread_(thread),
      program_(thread.program()),
      info_(program_.info()),
      state_(program_.State()),
      place_(std::move(place)),
      notifier_(loop, [this] { OnNotified(); }) {}

bool ThreadedCompute::Stop() {
  control_.abandoned = true;
  copier_.Stop();  // drops queued copies before either thread is waited for
  thread_.Stop();
  return place_->Drain();
}

// ---- What the loop asks for ----

std::optional<ProgramCall> ThreadedCompute::call() const {
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

void ThreadedCompute::RunTick(TickWork work, TickCalls calls) {
  Enqueue(Kind::kTick, [this, work = std::move(work), calls = std::move(calls)]() mutable {
    BeginTick(std::move(work), std::move(calls));
  });
}

void ThreadedCompute::AbortTick(std::function<void(TickOutput)> rest) {
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

void ThreadedCompute::Commit(CommitWork work, Done<CommitOutput> done) {
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
    return TaskOf(commit->work, commit->gradient.view());
  });
}

void ThreadedCompute::Evaluated(EvaluationTask evaluation, DoneStatus done) {
  Change change{
      .kind = ProgramCall::Kind::kEvaluated, .step = evaluation.step, .done = std::move(done)};
  Enqueue(std::move(change), [evaluation]() -> Result<Work> { return evaluation; });
}

void ThreadedCompute::CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) {
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

void ThreadedCompute::LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) {
  auto begin = [this, state = std::move(state)]() mutable -> Result<Work> {
    // Released on this thread: freeing gigabytes would block the loop.
    const std::shared_ptr<const StateCopy> given = std::exchange(state, nullptr);
    RETURN_IF_ERROR(pliant::CopyState(given->view(), program_.State()));
    return LoadedWork{};
  };
  Enqueue(Change{.kind = ProgramCall::Kind::kLoad, .done = std::move(done)}, std::move(begin));
}

// ---- On the loop's thread ----

void ThreadedCompute::Enqueue(Change change, std::function<Result<Work>()> begin) {
  change.stepper = std::make_unique<ChangeStepper>(std::move(begin));
  Enqueue(Kind::kChange,
          [this, change = std::move(change)]() mutable { BeginChange(std::move(change)); });
}

void ThreadedCompute::BeginNext() {
  while (idle()) {
    std::optional<OperationQueue::Begin> next = queue_.Next();
    if (!next) return;
    (*next)();
  }
}

void ThreadedCompute::BeginTick(TickWork work, TickCalls calls) {
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
      result_ = CatchAll([&] { return stepped ? tick.stepper.End(output_) : std::move(stepped); });
      if (!result_) tick.side->AbortExchange();  // some bucket is missing: it would not end
      place_->Then([this, &tick](const Status& computed) { OnComputed(tick, computed); });
    });
  });
}

void ThreadedCompute::BeginChange(Change change) {
  computed_.Forget();
  const Change& running = running_.emplace<Change>(std::move(change));
  thread_.Run(*running.stepper, [this, &running](Status stepped) {
    EndOnException("computation", [&] {
      result_ = CatchAll([&] {
        changed_wishes_ = program_.wishes();
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

void ThreadedCompute::OnNotified() {
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

void ThreadedCompute::End() {
  const Lifetime::Watch watch = lifetime_.watch();
  if (auto* const tick = std::get_if<RunningTick>(&running_)) {
    EndTick(std::move(tick->calls), tick->side->rounds());
  } else {
    auto& change = std::get<Change>(running_);
    wishes_ = changed_wishes_;
    const DoneStatus done = std::move(change.done);
    done(std::move(result_));
  }
  if (watch.over()) return;
  running_ = Idle{};
  BeginNext();
}

void ThreadedCompute::EndTick(TickCalls calls, GradientRounds* rounds) {
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

// ---- Any thread ----

void ThreadedCompute::OnComputed(RunningTick& tick, const Status& computed) {
  if (computed) {
    tick.side->Complete(output_);
  } else {
    output_ = {};
    result_ = computed;
  }
  Over();
}

void ThreadedCompute::Over() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  notifier_.Notify();
}

void ThreadedCompute::HandOver(NodePart part) {
  if (control_.abandoned) return;
  {
    const std::lock_guard lock(mutex_);
    parts_.push_back(std::move(part));
  }
  notifier_.Notify();
}

std::unique_ptr<Compute> NewThreadedCompute(EventLoop& loop, ProgramThread& thread,
                                            std::unique_ptr<GradientPlace> place) {
  return std::make_unique<ThreadedCompute>(loop, thread, std::move(place));
}

}  // namespace pliant
