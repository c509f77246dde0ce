#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/membership/messages.h"
#include "trainer/protocol/slice_failure.h"
#include "trainer/runtime/best_model.h"
#include "trainer/runtime/checkpoint_schedule.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// One member's part of a checkpoint that members write together.
struct CheckpointSave {
  CheckpointLabel label;
  StateSlice slice;     // this member's rank, of the members that write
  Tick tick = 0;        // applied ticks of its state
  LearnerId rank_zero;  // reports the checkpoint
};

// Writes checkpoints, or this learner's slices of them, from the copy of the state to the manifest.
// Lives as long as the learner.
class CheckpointDriver {
 public:
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    Checkpointer& checkpointer;
    LearnerStats& stats;
  };
  // Sends to rank 0 why this learner's slice is missing: only rank 0 reports why a checkpoint
  // failed.
  using ReportFailure = std::function<void(const CheckpointSave& save, const Error& error)>;
  using Done = std::function<void(bool saved)>;

  // `kept`: how many checkpoints are kept. `unix_offset_seconds`: Unix time minus the loop's time.
  CheckpointDriver(CheckpointPolicy policy, int kept, double unix_offset_seconds, Parts parts,
                   ReportFailure report_failure);

  // `recovery`: the membership was not entered at a boundary.
  void OnEntered(bool recovery);
  bool Due(const TickPlan& plan, Tick ticks) const {
    return schedule_.Due(plan, ticks, saving_, parts_.tasks.Now());
  }

  // Writes this member's slice, if it has one. The state does not change before the copy is made.
  // `done` is for rank 0: whether the checkpoint is there.
  void Save(CheckpointSave save, Done done);
  // Writes the best model so far, in place of the one before. `note`: the program's text for it.
  void ExportBest(CheckpointLabel label, std::string note) {
    ++writing_;
    best_.Export(std::move(label), std::move(note));
  }
  void OnSliceFailed(const LearnerId& peer, SliceFailure failure);
  // Reports a write error, also one of the final model, like that of a checkpoint.
  void NoteWriteError(const Error& error);

  bool saving() const { return saving_; }
  bool writing() const { return writing_ > 0; }
  // Only while writing(): runs `task` when no copy or write is running any longer. A later task
  // replaces an earlier one.
  void WhenWritten(std::function<void()> task);
  std::optional<Tick> saved_tick() const { return saved_tick_; }
  const std::optional<CheckpointReport>& report() const { return report_; }

 private:
  struct Running {
    CheckpointSave save;
    TimePoint began{};
    std::uint64_t recoveries = 0;  // before this save
    Done done;
  };
  using Written = Result<std::optional<Manifest>>;

  void EndWriting();
  void OnWritten(const std::shared_ptr<Running>& running, Written written);
  // The member that writes the last slice publishes the checkpoint; rank 0 looks for that until
  // `by`.
  void AwaitSlices(const std::shared_ptr<Running>& running, TimePoint by);
  void OnLooked(const std::shared_ptr<Running>& running, TimePoint by, Written published);
  void End(const Running& running, const Written& saved);
  Error WhyIncomplete(const Running& running) const;
  double UnixNow() const;

  const int kept_;
  const double unix_offset_seconds_;
  const Parts parts_;
  const ReportFailure report_failure_;
  CheckpointSchedule schedule_;
  BestModel best_{
      {.tasks = parts_.tasks, .compute = parts_.compute, .checkpointer = parts_.checkpointer},
      [this] { EndWriting(); }};
  bool saving_ = false;
  int writing_ = 0;  // running copies and writes of the state, of its slices, or of best models
  std::function<void()> when_written_;
  std::uint64_t recoveries_ = 0;
  std::optional<Tick> saved_tick_;
  std::optional<CheckpointReport> report_;  // none: no checkpoint was tried
  struct ReportedFailure {
    SliceFailure failure;
    std::uint64_t recoveries = 0;  // a tick may be saved again after one
  };
  std::optional<ReportedFailure> reported_;  // the last one that another member reported
};

}  // namespace pliant
