#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/checkpoint/stored_checkpoint.h"
#include "trainer/process/replay_range.h"

namespace pliant {

// The checkpointer of a learner that computes a job's steps again, alone: it restores the
// checkpoint to begin from, and compares the job's later checkpoints with those that would be
// written now. The volume is only read. Works on the event loop, which nobody else waits for.
class ReplayChecker final : public Checkpointer {
 public:
  // Called once: with what was the same, or kCorrupt and the first difference.
  using Verdict = std::function<void(Result<std::string>)>;

  // kNotFound: no checkpoint to begin from, or none to compare.
  static Result<std::unique_ptr<ReplayChecker>> Open(EventLoop& loop, CheckpointStore& store,
                                                     const ReplayRange& range, Verdict verdict);

  // The numbers of ticks after which the checkpoints to compare were written.
  const std::set<Tick>& ticks() const { return ticks_; }

  void Save(CheckpointLabel label, StateSlice slice, std::shared_ptr<const StateCopy> state,
            int keep, Done<std::optional<Manifest>> done) override;
  void Publish(CheckpointLabel label, int slices, int keep,
               Done<std::optional<Manifest>> done) override;
  void FindNewest(Done<StoredCheckpoint> done) override;
  void Restore(JobIdentity job, Done<Restored> done) override;
  void RestoreFirst(JobIdentity job, Done<Restored> done) override;
  void ExportFinal(CheckpointLabel label, std::shared_ptr<const StateCopy> state,
                   FinalLayout layout, Done<Manifest> done) override;
  // Compares nothing: the job may have a better one by now.
  void ExportBest(CheckpointLabel label, std::shared_ptr<const StateCopy> state, FinalLayout layout,
                  Done<Manifest> done) override;
  void FindFinal(Done<Manifest> done) override;

 private:
  ReplayChecker(EventLoop& loop, CheckpointStore& store, Verdict verdict)
      : loop_(loop), store_(store), verdict_(std::move(verdict)) {}

  template <typename T>
  void Answer(Done<T> done, Result<T> result);
  void CompareUpTo(const TrainingPosition& position, const StateDict& now);
  Status CompareWith(const StoredCheckpoint& then, const StateDict& now) const;
  void Judge(std::uint64_t step, const Status& same);
  void Say(Result<std::string> verdict);

  EventLoop& loop_;
  CheckpointStore& store_;
  Verdict verdict_;  // empty once it was called
  StoredCheckpoint from_;
  std::vector<StoredCheckpoint> targets_;  // still to compare, the first ones first
  bool final_ = false;                     // compare the final model, too
  std::set<Tick> ticks_;
  std::uint64_t compared_ = 0;
  const Lifetime lifetime_;
};

}  // namespace pliant
