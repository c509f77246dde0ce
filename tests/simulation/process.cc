#include "tests/simulation/process.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "trainer/runtime/run_shards.h"

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
  gate_->Run([this, peer] { handler_->OnPeerConnected(peer); });
}

void GatedTransport::OnFrame(const LearnerId& peer, Frame frame) {
  gate_->Run([this, peer, frame = std::move(frame)] { handler_->OnFrame(peer, frame); });
}

void GatedTransport::OnPeerLost(const LearnerId& peer, std::string_view reason) {
  gate_->Run([this, peer, reason = std::string(reason)] { handler_->OnPeerLost(peer, reason); });
}

SimCompute::SimCompute(EventLoop& loop, Program& program, int logical_shards,
                       std::function<Duration(std::size_t shards)> delay,
                       std::function<void()> check)
    : loop_(loop),
      program_(program),
      shape_(program.State()),
      delay_(std::move(delay)),
      check_(std::move(check)),
      folder_(logical_shards, program.info().gradient_elements, logical_shards) {}

void SimCompute::Enqueue(Operation operation) {
  queue_.push_back(std::move(operation));
  if (queue_.size() == 1) BeginNext();
}

void SimCompute::BeginNext() {
  if (queue_.empty()) return;
  abandoned_ = false;
  loop_.PostAfter(queue_.front().delay, [this] {
    const std::function<void()> work = std::move(queue_.front().work);
    // The operation counts as running until it is done, so that its callbacks cannot start the
    // next.
    if (!abandoned_) work();
    queue_.pop_front();
    BeginNext();
  });
}

void SimCompute::RunTick(TickWork work, std::function<void(HeldNode)> on_node,
                         Done<TickOutput> done) {
  const Duration delay = delay_(work.tasks.size());
  Enqueue({.tick = true, .delay = delay, .work = [this, work = std::move(work), on_node, done] {
             if (work.kind == TickKind::kTrain) folder_.Begin(work.blocks);
             const std::atomic<bool> never = false;
             const Result<TickOutput> output = RunShards(program_, folder_, work, never, on_node);
             if (!abandoned_) done(output);
           }});
}

void SimCompute::AbandonTick() {
  if (queue_.empty()) return;
  if (queue_.front().tick) abandoned_ = true;
  std::erase_if(queue_, [&](const Operation& operation) {
    return operation.tick && &operation != &queue_.front();
  });
}

void SimCompute::Commit(CommitWork work, DoneStatus done) {
  Enqueue({.delay = delay_(0), .work = [this, work = std::move(work), done] {
             const Status status = program_.Commit({.epoch = work.epoch,
                                                    .step = work.step,
                                                    .gradient = work.gradient,
                                                    .buffers = work.buffers.view,
                                                    .sums = work.sums});
             check_();
             done(status);
           }});
}

void SimCompute::CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) {
  Enqueue(
      {.delay = delay_(0), .work = [this, slice, done] {
         done(std::make_shared<const StateCopy>(StateCopy::Of(SliceOf(program_.State(), slice))));
       }});
}

void SimCompute::LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) {
  Enqueue({.delay = delay_(0), .work = [this, state = std::move(state), done] {
             Status status = pliant::CopyState(state->view(), program_.State());
             if (status) status = program_.LoadedState();
             check_();
             done(status);
           }});
}

}  // namespace pliant::sim
