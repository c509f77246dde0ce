#include <functional>
#include <utility>

#include "base/log.h"
#include "trainer/protocol/wire.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant {
namespace {

// How long an exit waits for the last messages to go out.
constexpr Duration kLinger = std::chrono::milliseconds(250);
constexpr Duration kLastSaveRetry = std::chrono::seconds(1);

}  // namespace

// ---- Leaving ----

void LearnerLoop::RequestLeave(Duration grace) {
  if (phase_ == Phase::kExited) return;
  const TimePoint by = tasks_.Now() + grace;
  if (leaving_ && leaving_->gone_by <= by) return;
  if (!leaving_) log::Info("leaving", {{"graceSeconds", ToSeconds(grace)}});
  leaving_ = {.gone_by = by, .drain_vote = leaving_ && leaving_->drain_vote};
  session_.Send(Leaving{ToSeconds(grace)});
  // The coordinator has half of the grace period to arrange the leave.
  tasks_.After(grace / 2, [this] { leaving_->drain_vote = true; });
  tasks_.After(grace, [this] {
    Exit({.reason = LeftReason::kDrained,
          .message = phase_ == Phase::kDraining
                         ? "its grace period ended before a checkpoint was written"
                         : "its grace period ended before it came to a boundary"});
  });
  LeaveWhenFree();
}

void LearnerLoop::LeaveWhenFree() {
  // Not while it starts: the final model may exist. Not while it is a member, or holds a state that
  // others may need.
  if (phase_ == Phase::kIdle && leaving_ && !view_.entry_put_off()) LeaveUnlessFinal();
}

void LearnerLoop::LeaveUnlessFinal() {
  // A learner that is called back stays: others may need its state, whatever happens to that
  // membership.
  const auto called_back = [this, newest = view_.newest()] {
    return view_.newest() != newest || view_.entry_put_off();
  };
  // A checkpoint that several members write is worthless without this learner's slice.
  if (checkpoints_.writing()) {
    return checkpoints_.WhenWritten([this, called_back] {
      if (!called_back()) LeaveUnlessFinal();
    });
  }
  parts_.checkpointer.FindFinal(
      tasks_.Guard<Result<Manifest>>([this, called_back](Result<Manifest> final) {
        if (final) {
          const Status same = CheckBase(*final, parts_.compute.info().base);
          if (!same) return Fail(same.error());
          state_.own.applied_ticks = final->position.tick;
          final_step_ = final->position.step;
          return Complete(final->parameters_sha256);
        }
        if (called_back()) return;
        Exit({.reason = LeftReason::kDrained, .message = "left as asked"});
      }));
}

void LearnerLoop::Fail(const Error& error) {
  if (phase_ == Phase::kExited) return;
  log::Error("learner failed", {{"cause", error.message}});
  Exit({.reason = LeftReason::kFailed, .code = error.code, .message = error.message});
}

void LearnerLoop::Exit(LearnerExit exit) {
  if (phase_ == Phase::kExited) return;
  phase_ = Phase::kExited;
  exit.step = final_step_.value_or(state_.step());
  session_.Send(Left{.applied_ticks = state_.own.applied_ticks,
                     .reason = exit.reason,
                     .message = exit.message,
                     .parameters_sha256 = exit.parameters_sha256});
  ticks_.Abort();
  // From here on no callback runs; only the exit itself is left.
  session_.End();
  tasks_.End();
  tasks_.After(parts_.link == nullptr ? Duration::zero() : kLinger,
               [this, exit = std::move(exit)] { on_exit_(exit); });
}

// ---- The end of the job ----

void LearnerLoop::Finish() {
  phase_ = Phase::kFinishing;
  training_->Finish();
  log::Info("all steps done", {{"step", state_.step()}});
  if (view_.rank() == 0) {
    // The next heartbeat would come too late for the last evaluation, and for the new total of a
    // program that stopped early.
    session_.SendProgress();
    return moves_.Then(SimpleMove::kPublish);
  }
  final_model_.Poll();
  if (std::optional<Loss> loss = view_.TakeLoss()) moves_.Then(LossMove{*std::move(loss)});
  moves_.Then(SimpleMove::kAdvanceCatchUp);
  // Not called directly: it comes after the loss, which may stop this learner.
  moves_.Then(SimpleMove::kTakeEarlyFramesSoon);
}

void LearnerLoop::Complete(const std::string& parameters_sha256) {
  if (phase_ == Phase::kFinishing && view_.rank() == 0) {
    peers_.SendToAll(FrameKind::kFinished, TextPayload(parameters_sha256));
  }
  Exit({.reason = LeftReason::kCompleted,
        .message = "all steps done",
        .parameters_sha256 = parameters_sha256});
}

// ---- Checkpoints ----

void LearnerLoop::SaveCheckpoint(int slices, std::function<void(bool saved)> done) {
  checkpoints_.Save({.label = LabelOf(state_.schedule, state_.group, view_.current().id,
                                      options_.framework, parts_.compute.info().base),
                     .slice = {.index = view_.rank(), .count = slices},
                     .tick = state_.applied(),
                     .rank_zero = view_.member(0)},
                    std::move(done));
}

// ---- All leave ----

void LearnerLoop::Drain() {
  phase_ = Phase::kDraining;
  training_->Drain();
  log::Info("draining", {{"tick", state_.applied()}});
  // Sets a deadline, also for learners that were not asked individually.
  RequestLeave(options_.grace);
  const int slices = training_->CheckpointSlices(options_.checkpoint_slice_bytes);
  if (view_.rank() == 0) return SaveLast(slices);
  SaveCheckpoint(slices, [](bool) {});
  if (std::optional<Loss> loss = view_.TakeLoss()) moves_.Then(LossMove{*std::move(loss)});
  moves_.Then(SimpleMove::kTakeEarlyFramesSoon);  // as in Finish
}

void LearnerLoop::SaveLast(int slices) {
  if (phase_ != Phase::kDraining) return;
  if (checkpoints_.saving())
    return tasks_.After(kLastSaveRetry / 20, [this, slices] { SaveLast(slices); });
  if (checkpoints_.saved_tick() != state_.applied()) {
    return SaveCheckpoint(slices, [this](bool saved) {
      // A member that did not write its slice does not retry: now rank 0 writes everything.
      tasks_.After(saved ? Duration::zero() : kLastSaveRetry, [this] { SaveLast(1); });
    });
  }
  peers_.SendToAll(FrameKind::kFinished);
  Exit({.reason = LeftReason::kDrained, .message = "left with a checkpoint"});
}

}  // namespace pliant
