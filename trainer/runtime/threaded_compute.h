#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

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

// Runs a program on its thread, for one learner. See NewThreadedCompute.
//
// The loop hands one operation at a time to the program's thread, so that what the loop prepares
// for a tick (GradientAccumulator::Begin) never overlaps with the previous tick.
class ThreadedCompute final : public Compute {
 public:
  ThreadedCompute(EventLoop& loop, ProgramThread& thread, std::unique_ptr<GradientPlace> place);
  ~ThreadedCompute() override { Stop(); }
  bool Stop() override;

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return state_; }
  FinalLayout final_layout() const override { return program_.final_layout(); }
  bool keeps_means() const override { return place_->keeps_means(); }
  Communicators* communicators() override { return place_->communicators(); }

  std::optional<ProgramCall> call() const override;
  void RunTick(TickWork work, TickCalls calls) override;
  void AbortTick(std::function<void(TickOutput)> rest) override;
  void Commit(CommitWork work, Done<CommitOutput> done) override;
  void Evaluated(EvaluationTask evaluation, DoneStatus done) override;
  ProgramWishes wishes() const override { return wishes_; }

  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done) override;
  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done) override;

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
  void Enqueue(Change change, std::function<Result<Work>()> begin);
  bool idle() const { return std::holds_alternative<Idle>(running_) && !computed_.saving(); }

  void BeginNext();
  void BeginTick(TickWork work, TickCalls calls);
  void BeginChange(Change change);

  // A part of the running operation is finished, or all of it.
  void OnNotified();

  // The callback may destroy this object.
  void End();

  // `rounds`: those of the tick; nullptr: none.
  void EndTick(TickCalls calls, GradientRounds* rounds);

  // ---- Any thread ----

  // All that the tick has queued is complete.
  void OnComputed(RunningTick& tick, const Status& computed);

  // The running operation is over, with result_.
  void Over();
  void HandOver(NodePart part);

  // Does nothing after this object is destroyed.
  void Post(std::function<void()> task) { loop_.Post(lifetime_.Guard(std::move(task))); }

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
  ProgramWishes changed_wishes_;  // the program's after the change

  // Loop's thread only.
  OperationQueue queue_;
  ProgramWishes wishes_;
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

}  // namespace pliant
