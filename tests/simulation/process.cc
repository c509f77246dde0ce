#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tests/simulation/run_shards.h"
#include "trainer/collective/gradient_square.h"
#include "trainer/collective/tree_sum.h"

namespace pliant::sim {

void Gate::Resume() {
  stalled_ = false;
  while (!waiting_.empty() && !stalled_) {
    const std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    task();
  }
}

TimerId GatedLoop::PostAfter(Duration delay, std::function<void()> task) {
  TimePoint due = loop_.Now() + delay + late_();
  if (delay == Duration::zero()) due = posted_last_ = std::max(due, posted_last_);
  return loop_.PostAfter(due - loop_.Now(), [gate = std::weak_ptr(gate_), task = std::move(task)] {
    if (const auto living = gate.lock()) living->Run(task);
  });
}

void GatedTransport::OnPeerConnected(const LearnerId& peer) {
  gate_->Run([this, peer] {
    meet_(peer);
    handler_->OnPeerConnected(peer);
  });
}

void GatedTransport::OnFrame(const LearnerId& peer, Frame frame) {
  gate_->Run([this, peer, frame = std::move(frame)]() mutable {
    see_(peer, frame, /*sent=*/false);
    handler_->OnFrame(peer, std::move(frame));
  });
}

void GatedTransport::OnPeerLost(const LearnerId& peer, const PeerLoss& loss) {
  gate_->Run([this, peer, loss] { handler_->OnPeerLost(peer, loss); });
}

SimCompute::SimCompute(EventLoop& loop, Program& program, int max_shards,
                       std::function<Duration(std::size_t shards)> delay,
                       std::function<void(const ShardTask&)> on_shard, std::function<void()> check)
    : loop_(loop),
      program_(program),
      shape_(program.State()),
      delay_(std::move(delay)),
      on_shard_(std::move(on_shard)),
      check_(std::move(check)),
      accumulator_(program.info().gradient_elements, max_shards) {}

std::optional<ProgramCall> SimCompute::call() const {
  if (queue_.empty() || queue_.front().tick == nullptr) return std::nullopt;
  const Tick& tick = *queue_.front().tick;
  if (tick.shards == tick.work.tasks.size()) return std::nullopt;
  const ShardTask& task = tick.work.tasks[tick.shards];
  const bool train = task.kind == TickKind::kTrain;
  return ProgramCall{.kind = train ? ProgramCall::Kind::kTrain : ProgramCall::Kind::kEvaluate,
                     .number = tick.number,
                     .step = task.step,
                     .shard = task.shard};
}

void SimCompute::Enqueue(Operation operation) {
  queue_.push_back(std::move(operation));
  if (queue_.size() == 1) BeginNext();
}

void SimCompute::BeginNext() {
  if (queue_.empty()) return;
  if (const std::shared_ptr<Tick> tick = queue_.front().tick) {
    // The result does not depend on timing: compute it now, report its parts as time passes.
    tick->parts.resize(tick->work.tasks.size());
    tick->output =
        Run(*tick, tick->work.tasks.size(),
            [&](std::size_t shard, const NodePart& part) { tick->parts[shard].push_back(part); });
    return NextShard(tick);
  }
  loop_.PostAfter(delay_(0), [this] {
    const std::function<void()> work = std::move(queue_.front().work);
    // The operation counts as running until it has finished, so that its callbacks cannot start the
    // next one.
    work();
    EndOperation();
  });
}

void SimCompute::EndOperation() {
  queue_.pop_front();
  BeginNext();
}

void SimCompute::NextShard(const std::shared_ptr<Tick>& tick) {
  if (tick->ticks_aborted || tick->shards == tick->work.tasks.size()) {
    loop_.PostAfter(delay_(0), [this, tick] { EndTick(tick); });
    return;
  }
  NextPart(tick, delay_(1) / (std::ssize(tick->parts[tick->shards]) + 1));
}

void SimCompute::EndTick(const std::shared_ptr<Tick>& tick) {
  queue_.front().tick = nullptr;  // too late to abort it
  if (tick->ticks_aborted) {
    tick->rest(RestOf(*tick));
  } else {
    if (tick->work.device_step) whole_ = tick;
    if (tick->work.device_step && tick->work.device_step->rounds) Exchange(tick);
    tick->calls.done(tick->output);
  }
  EndOperation();
}

void SimCompute::Exchange(const std::shared_ptr<Tick>& tick) {
  const FloatBuffer mean(program_.info().gradient_elements);
  tick->output->mean = mean;
  tick->exchanging = true;
  const std::vector<HeldNode> nodes = std::exchange(tick->output->nodes, {});
  rounds->Sum(tick->work, nodes, [this, tick, mean](const Result<FloatBuffer>& sum) {
    tick->exchanging = false;
    if (tick->rest) return tick->rest(RestOf(*tick));
    if (sum) std::ranges::copy(sum->view(), mean.view().begin());
    tick->calls.exchanged(sum.transform([](const FloatBuffer&) {}));
  });
}

void SimCompute::NextPart(const std::shared_ptr<Tick>& tick, Duration every) {
  loop_.PostAfter(every, [this, tick, every] {
    std::deque<NodePart>& parts = tick->parts[tick->shards];
    if (parts.empty()) {
      on_shard_(tick->work.tasks[tick->shards++]);
      return NextShard(tick);
    }
    const NodePart part = std::move(parts.front());
    parts.pop_front();
    if (!tick->ticks_aborted && !tick->work.device_step) tick->calls.on_part(part);
    NextPart(tick, every);
  });
}

TickOutput SimCompute::RestOf(const Tick& tick) {
  Tick aborted = tick;
  aborted.work.device_step.reset();
  return Run(aborted, tick.shards, [](std::size_t, const NodePart&) {});
}

TickOutput SimCompute::Run(const Tick& tick, std::size_t shards, const OnPart& on_part) {
  TickWork work = tick.work;
  work.tasks.resize(shards);
  if (work.kind == TickKind::kTrain)
    accumulator_.Begin(work.logical_shards, work.blocks, work.buckets, work.measure);
  TickOutput output;
  const Status status = RunShards(
      program_, accumulator_, buffers_, work,
      [&](const NodePart& part) { on_part(output.shards.size(), part); }, output);
  CHECK(status.has_value(), "the toy program does not fail");
  if (work.device_step && !work.device_step->rounds && shards == tick.work.tasks.size()) {
    std::vector<NodeIndex> nodes;
    std::vector<std::span<const float>> sums;
    for (const HeldNode& node : output.nodes) {
      nodes.push_back(node.node);
      sums.emplace_back(node.sum.view());
    }
    output.mean = FloatBuffer(program_.info().gradient_elements);
    TreeSum().Sum(LevelsOf(work.logical_shards, nodes), sums, work.device_step->divisor,
                  output.mean.view());
    output.nodes.clear();
  }
  return output;
}

void SimCompute::RunTick(TickWork work, TickCalls calls) {
  auto tick = std::make_shared<Tick>();
  whole_ = nullptr;
  tick->number = ++ticks_;
  tick->work = std::move(work);
  tick->calls = std::move(calls);
  Enqueue({.tick = std::move(tick), .work = {}});
}

void SimCompute::AbortTick(std::function<void(TickOutput)> rest) {
  const std::shared_ptr<Tick> running = queue_.empty() ? nullptr : queue_.front().tick;
  std::erase_if(queue_, [&](const Operation& operation) {
    return operation.tick != nullptr && operation.tick != running;
  });
  if (running == nullptr) {
    const std::shared_ptr<Tick> whole = std::exchange(whole_, nullptr);
    if (whole == nullptr) return loop_.Post([rest = std::move(rest)] { rest({}); });
    if (whole->exchanging) {
      whole->rest = std::move(rest);
      whole_ = whole;  // a second call replaces `rest`
      return rounds->Abort([] {});
    }
    loop_.PostAfter(delay_(0), [this, whole, rest = std::move(rest)] { rest(RestOf(*whole)); });
    return;
  }
  running->ticks_aborted = true;
  running->rest = std::move(rest);
  if (running->work.device_step && running->work.device_step->rounds) rounds->Abort([] {});
}

void SimCompute::Commit(CommitWork work, Done<CommitOutput> done) {
  whole_ = nullptr;
  Enqueue({.tick = nullptr, .work = [this, work = std::move(work), done] {
             const FloatBuffer& gradient = work.mean.values;
             const Status status = program_.Commit(TaskOf(work, gradient.view()));
             check_();
             CommitOutput output;
             if (work.measure) {
               output.gradient_square =
                   GradientSquare::Of(CellsOf(program_.info()), gradient.view());
             }
             done(status.transform([&] { return output; }));
           }});
}

void SimCompute::Evaluated(EvaluationTask evaluation, DoneStatus done) {
  Enqueue({.tick = nullptr, .work = [this, evaluation, done] {
             const Status status = program_.Evaluated(evaluation);
             check_();
             done(status);
           }});
}

void SimCompute::CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) {
  Enqueue({.tick = nullptr, .work = [this, slice, done] {
             auto copy =
                 std::make_shared<const StateCopy>(StateCopy::Of(SliceOf(program_.State(), slice)));
             done(std::move(copy));
           }});
}

void SimCompute::LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) {
  Enqueue({.tick = nullptr, .work = [this, state = std::move(state), done] {
             Status status = pliant::CopyState(state->view(), program_.State());
             if (status) status = program_.LoadedState();
             check_();
             done(status);
           }});
}

}  // namespace pliant::sim
