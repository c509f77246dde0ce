#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "trainer/checkpoint/volume_error.h"
#include "trainer/runtime/learner_loop_impl.h"

namespace pliant {
namespace {

constexpr Duration kLastSaveRetry = std::chrono::seconds(1);
constexpr Duration kSlicesPoll = std::chrono::milliseconds(250);
// Other learners write as much as this one: who takes three times as long does not come any more.
constexpr Duration kSlicesPatience = std::chrono::seconds(10);
constexpr int kSlicesPatienceTimes = 3;
constexpr std::size_t kSliceErrorBytesMost = 1024;  // that is kept of what a peer says

}  // namespace

// A checkpoint, or this learner's slice of one, from the copy of the state to the manifest.
struct LearnerLoop::Impl::SaveUnderWay {
  CheckpointLabel label;
  StateSlice slice;
  Tick tick = 0;
  TimePoint began{};
  std::uint64_t recoveries = 0;  // before it
  LearnerId rank_zero;           // who tells of it
  std::function<void(bool saved)> done;
};

bool LearnerLoop::Impl::CheckpointDue(const TickPlan& plan) {
  // Each of these counts, also while another is under way.
  if (options_.checkpoint_at.contains(applied_ + 1)) return true;
  if (plan.kind != TickKind::kTrain || saving_) return false;
  if (save_again_at_ && parts_.loop.Now() >= *save_again_at_) return true;
  const std::uint64_t every = options_.checkpoint_every_steps;
  if (every > 0 && (plan.step + 1) % every == 0) return true;
  return options_.checkpoint_every > Duration::zero() &&
         parts_.loop.Now() - *last_save_ >= options_.checkpoint_every;
}

// The members that write a checkpoint are the first so many. Rank 0 never follows.
int LearnerLoop::Impl::Slices() const {
  const auto first_follower = std::ranges::find(in_step_, false);
  return SlicesFor(state_bytes_, options_.checkpoint_slice_bytes,
                   static_cast<int>(first_follower - in_step_.begin()));
}

// The state does not change before the copy is made.
void LearnerLoop::Impl::SaveCheckpoint(int slices, std::function<void(bool saved)> done) {
  last_save_ = parts_.loop.Now();  // also of who writes nothing: it may be rank 0 next
  if (rank() >= slices) return;
  saving_ = true;
  ++writing_;
  const auto save =
      std::make_shared<SaveUnderWay>(SaveUnderWay{.label = Label(),
                                                  .slice = {.index = rank(), .count = slices},
                                                  .tick = applied_,
                                                  .began = *last_save_,
                                                  .recoveries = recoveries_,
                                                  .rank_zero = member(0),
                                                  .done = std::move(done)});
  parts_.compute.CopyState(
      save->slice, Guarded<Result<std::shared_ptr<const StateCopy>>>(
                       [this, save](Result<std::shared_ptr<const StateCopy>> state) {
                         if (!state) return OnSliceWritten(save, std::unexpected(state.error()));
                         parts_.checkpointer.Save(
                             save->label, save->slice, *std::move(state), options_.checkpoints_kept,
                             Guarded<Result<std::optional<Manifest>>>([this, save](auto written) {
                               OnSliceWritten(save, std::move(written));
                             }));
                       }));
}

void LearnerLoop::Impl::OnSliceWritten(const std::shared_ptr<SaveUnderWay>& save,
                                       Result<std::optional<Manifest>> written) {
  if (--writing_ == 0 && std::exchange(leave_when_written_, false)) LeaveUnlessFinal();
  if (save->slice.index == 0 && written && !*written) {
    const Duration took = parts_.loop.Now() - save->began;
    return AwaitSlices(save,
                       parts_.loop.Now() + std::max(kSlicesPatience, kSlicesPatienceTimes * took));
  }
  EndSave(*save, std::move(written));
}

// Who writes the last slice publishes them all; rank 0 is who tells of it.
void LearnerLoop::Impl::AwaitSlices(const std::shared_ptr<SaveUnderWay>& save, TimePoint by) {
  After(kSlicesPoll, [this, save, by] {
    parts_.checkpointer.Publish(save->label, save->slice.count, options_.checkpoints_kept,
                                Guarded<Result<std::optional<Manifest>>>(
                                    [this, save, by](Result<std::optional<Manifest>> published) {
                                      if (!published || *published)
                                        return EndSave(*save, std::move(published));
                                      if (save->recoveries != recoveries_) {
                                        // Its writer may be gone. Those who are left begin another
                                        // at the next boundary.
                                        log::Info("checkpoint given up with its membership",
                                                  {{"step", save->label.position.step}});
                                        saving_ = false;
                                        save_again_at_ = parts_.loop.Now();
                                        return save->done(false);
                                      }
                                      if (parts_.loop.Now() < by) return AwaitSlices(save, by);
                                      EndSave(*save, std::unexpected(WhyIncomplete(*save)));
                                    }));
  });
}

// Rank 0 alone is heard when it says why there is no checkpoint.
void LearnerLoop::Impl::TellSliceFailed(const SaveUnderWay& save, const Error& error) {
  WireWriter writer;
  for (const char c : error.message) writer.Put(c);
  Send(save.rank_zero, {.header = {.kind = FrameKind::kSliceFailed,
                                   .membership = membership_.id,
                                   .tick = save.tick,
                                   .node = static_cast<std::uint32_t>(error.code)},
                        .payload = writer.Take()});
}

void LearnerLoop::Impl::OnSliceFailed(const LearnerId& peer, const Frame& frame) {
  std::string_view text(reinterpret_cast<const char*>(frame.payload.view.data()),
                        frame.payload.view.size());
  // The end of a volume's error says what is wrong with it.
  if (text.size() > kSliceErrorBytesMost) text.remove_prefix(text.size() - kSliceErrorBytesMost);
  const bool known = frame.header.node <= static_cast<std::uint32_t>(ErrorCode::kInternal);
  const ErrorCode code =
      known ? static_cast<ErrorCode>(frame.header.node) : ErrorCode::kUnavailable;
  slice_failure_ = SliceFailure{.tick = frame.header.tick,
                                .recoveries = recoveries_,
                                .error = InContext(peer.name, {code, std::string(text)})};
}

Error LearnerLoop::Impl::WhyIncomplete(const SaveUnderWay& save) const {
  const std::string what = Format("not all of its {} slices were written", save.slice.count);
  const bool told = slice_failure_ && slice_failure_->tick == save.tick &&
                    slice_failure_->recoveries == save.recoveries;
  return told ? InContext(what, slice_failure_->error) : Error{ErrorCode::kTimeout, what};
}

void LearnerLoop::Impl::EndSave(const SaveUnderWay& save, Result<std::optional<Manifest>> saved) {
  saving_ = false;
  if (save.slice.index > 0 && saved) return;
  checkpoint_known_ = true;
  figures_.saving += parts_.loop.Now() - save.began;
  ++(saved ? figures_.checkpoints : figures_.checkpoints_failed);
  if (saved) {
    save_again_at_.reset();
    save_backoff_.Reset();
    saved_tick_ = save.tick;
    checkpoint_report_ = {.step = save.label.position.step,
                          .membership = save.label.position.membership,
                          .unix_seconds = Unix(parts_.loop.Now())};
    log::Info("checkpoint", {{"step", save.label.position.step}});
  } else {
    save_again_at_ = parts_.loop.Now() + save_backoff_.Next(0);
    NoteWriteError(saved.error());
    if (save.slice.index > 0) TellSliceFailed(save, saved.error());
    log::Warning("checkpoint failed", {{"step", save.label.position.step},
                                       {"slice", save.slice.index},
                                       {"cause", saved.error().message}});
  }
  save.done(saved.has_value());
}

void LearnerLoop::Impl::NoteWriteError(const Error& error) {
  checkpoint_known_ = true;
  checkpoint_report_.error = error.message;
  checkpoint_report_.reason = WriteProblemOf(error);
}

// ---- All leave ----

void LearnerLoop::Impl::Drain() {
  phase_ = Phase::kDraining;
  log::Info("draining", {{"tick", applied_}});
  // A bound, also for those who were not asked one by one.
  RequestLeave(options_.grace);
  if (rank() == 0) return SaveLast(Slices());
  SaveCheckpoint(Slices(), [](bool) {});
  if (loss_in_commit_) OnLoss(*std::exchange(loss_in_commit_, std::nullopt));
  DeliverHeldSoon();
}

void LearnerLoop::Impl::SaveLast(int slices) {
  if (phase_ != Phase::kDraining) return;
  if (saving_) return After(kLastSaveRetry / 20, [this, slices] { SaveLast(slices); });
  if (saved_tick_ != applied_) {
    return SaveCheckpoint(slices, [this](bool saved) {
      // Whoever did not write its slice does not try again: now it is for this one to write all.
      After(saved ? Duration::zero() : kLastSaveRetry, [this] { SaveLast(1); });
    });
  }
  SendToMembers(FrameKind::kFinished);
  Exit({.reason = LeftReason::kDrained, .message = "left with a checkpoint"});
}

}  // namespace pliant
