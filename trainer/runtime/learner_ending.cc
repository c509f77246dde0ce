#include <functional>
#include <utility>

#include "base/log.h"
#include "trainer/protocol/wire.h"
#include "trainer/runtime/learner_loop_impl.h"

namespace pliant {
namespace {

constexpr Duration kLastSaveRetry = std::chrono::seconds(1);

}  // namespace

// ---- The end of the job ----

void LearnerLoop::Impl::Finish() {
  phase_ = Phase::kFinishing;
  training_->Finish();
  log::Info("all steps done", {{"step", state_.step()}});
  if (view_.rank() == 0) {
    // The next heartbeat would come too late for the last evaluation, and for the new total of a
    // program that stopped early.
    session_.SendProgress();
    return final_model_.Publish(Label());
  }
  final_model_.Poll();
  if (std::optional<Loss> loss = view_.TakeLoss()) Then(LossStep{*std::move(loss)});
  Then(Step::kAdvanceCatchUp);
  // Not called directly: it comes after the loss, which may stop this learner.
  Then(Step::kTakeEarlyFramesSoon);
}

void LearnerLoop::Impl::Complete(const std::string& parameters_sha256) {
  if (phase_ == Phase::kFinishing && view_.rank() == 0) {
    peers_.SendToAll(FrameKind::kFinished, TextPayload(parameters_sha256));
  }
  Exit({.reason = LeftReason::kCompleted,
        .message = "all steps done",
        .parameters_sha256 = parameters_sha256});
}

// ---- Checkpoints ----

void LearnerLoop::Impl::SaveCheckpoint(int slices, std::function<void(bool saved)> done) {
  checkpoints_.Save({.label = Label(),
                     .slice = {.index = view_.rank(), .count = slices},
                     .tick = state_.applied(),
                     .rank_zero = view_.member(0)},
                    std::move(done));
}

// ---- All leave ----

void LearnerLoop::Impl::Drain() {
  phase_ = Phase::kDraining;
  training_->Drain();
  log::Info("draining", {{"tick", state_.applied()}});
  // Sets a deadline, also for learners that were not asked individually.
  RequestLeave(options_.grace);
  const int slices = training_->CheckpointSlices(options_.checkpoint_slice_bytes);
  if (view_.rank() == 0) return SaveLast(slices);
  SaveCheckpoint(slices, [](bool) {});
  if (std::optional<Loss> loss = view_.TakeLoss()) Then(LossStep{*std::move(loss)});
  Then(Step::kTakeEarlyFramesSoon);  // as in Finish
}

void LearnerLoop::Impl::SaveLast(int slices) {
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
