#include "trainer/runtime/checkpoint_driver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/checkpoint/volume_error.h"

namespace pliant {
namespace {

constexpr Duration kSlicesPoll = std::chrono::milliseconds(250);
// Other learners write as much as this one. After three times its duration, and at least
// kMinSlicesTimeout, missing slices count as lost.
constexpr Duration kMinSlicesTimeout = std::chrono::seconds(10);
constexpr int kSlicesTimeoutFactor = 3;

}  // namespace

CheckpointDriver::CheckpointDriver(CheckpointPolicy policy, int kept, double unix_offset_seconds,
                                   Parts parts, ReportFailure report_failure)
    : kept_(kept),
      unix_offset_seconds_(unix_offset_seconds),
      parts_(parts),
      report_failure_(std::move(report_failure)),
      schedule_(std::move(policy)) {}

void CheckpointDriver::OnEntered(bool recovery) {
  schedule_.OnEntered(parts_.tasks.Now());
  if (recovery) ++recoveries_;
}

void CheckpointDriver::Save(CheckpointSave save, Done done) {
  const TimePoint now = parts_.tasks.Now();
  schedule_.OnBegun(now);
  if (save.slice.index >= save.slice.count) return;
  saving_ = true;
  ++writing_;
  const auto running = std::make_shared<Running>(Running{
      .save = std::move(save), .began = now, .recoveries = recoveries_, .done = std::move(done)});
  parts_.compute.CopyState(running->save.slice,
                           parts_.tasks.Guard<Result<std::shared_ptr<const StateCopy>>>(
                               [this, running](Result<std::shared_ptr<const StateCopy>> state) {
                                 if (!state)
                                   return OnWritten(running, std::unexpected(state.error()));
                                 parts_.checkpointer.Save(
                                     running->save.label, running->save.slice, *std::move(state),
                                     kept_,
                                     parts_.tasks.Guard<Written>([this, running](Written written) {
                                       OnWritten(running, std::move(written));
                                     }));
                               }));
}

void CheckpointDriver::WhenWritten(std::function<void()> task) {
  CHECK(writing(), "there is something to wait for");
  when_written_ = std::move(task);
}

void CheckpointDriver::EndWriting() {
  if (--writing_ > 0) return;
  if (const auto task = std::exchange(when_written_, nullptr)) task();
}

void CheckpointDriver::OnWritten(const std::shared_ptr<Running>& running, Written written) {
  EndWriting();
  if (running->save.slice.index == 0 && written && !*written) {
    const Duration took = parts_.tasks.Now() - running->began;
    return AwaitSlices(
        running, parts_.tasks.Now() + std::max(kMinSlicesTimeout, kSlicesTimeoutFactor * took));
  }
  End(*running, written);
}

void CheckpointDriver::AwaitSlices(const std::shared_ptr<Running>& running, TimePoint by) {
  parts_.tasks.After(kSlicesPoll, [this, running, by] {
    parts_.checkpointer.Publish(running->save.label, running->save.slice.count, kept_,
                                parts_.tasks.Guard<Written>([this, running, by](Written published) {
                                  OnLooked(running, by, std::move(published));
                                }));
  });
}

void CheckpointDriver::OnLooked(const std::shared_ptr<Running>& running, TimePoint by,
                                Written published) {
  if (!published || *published) return End(*running, published);
  if (running->recoveries != recoveries_) {
    // A writer may be gone. The remaining members begin another checkpoint at the next boundary.
    log::Info("checkpoint aborted with its membership",
              {{"step", running->save.label.position.step}});
    saving_ = false;
    schedule_.OnSuperseded(parts_.tasks.Now());
    return running->done(false);
  }
  if (parts_.tasks.Now() < by) return AwaitSlices(running, by);
  End(*running, std::unexpected(WhyIncomplete(*running)));
}

void CheckpointDriver::OnSliceFailed(const LearnerId& peer, SliceFailure failure) {
  failure.error = InContext(peer.name, std::move(failure.error));
  reported_ = ReportedFailure{.failure = std::move(failure), .recoveries = recoveries_};
}

Error CheckpointDriver::WhyIncomplete(const Running& running) const {
  const std::string what =
      Format("not all of its {} slices were written", running.save.slice.count);
  const bool told = reported_ && reported_->failure.tick == running.save.tick &&
                    reported_->recoveries == running.recoveries;
  return told ? InContext(what, reported_->failure.error) : Error{ErrorCode::kTimeout, what};
}

void CheckpointDriver::End(const Running& running, const Written& saved) {
  const CheckpointSave& save = running.save;
  saving_ = false;
  if (save.slice.index > 0 && saved) return;
  parts_.stats.saving += parts_.tasks.Now() - running.began;
  ++(saved ? parts_.stats.checkpoints : parts_.stats.checkpoints_failed);
  if (saved) {
    schedule_.OnSaved();
    saved_tick_ = save.tick;
    report_ = CheckpointReport{.step = save.label.position.step,
                               .membership = save.label.position.membership,
                               .unix_seconds = UnixNow()};
    log::Info("checkpoint", {{"step", save.label.position.step}});
  } else {
    schedule_.OnFailed(parts_.tasks.Now());
    NoteWriteError(saved.error());
    if (save.slice.index > 0) report_failure_(save, saved.error());
    log::Warning("checkpoint failed", {{"step", save.label.position.step},
                                       {"slice", save.slice.index},
                                       {"cause", saved.error().message}});
  }
  running.done(saved.has_value());
}

void CheckpointDriver::NoteWriteError(const Error& error) {
  if (!report_) report_.emplace();
  report_->error = error.message;
  report_->reason = WriteProblemOf(error);
}

double CheckpointDriver::UnixNow() const {
  return ToSeconds(parts_.tasks.Now().time_since_epoch()) + unix_offset_seconds_;
}

}  // namespace pliant
