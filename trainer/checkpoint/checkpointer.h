#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/checkpoint/store.h"

namespace pliant {

// Reads and writes checkpoints without blocking the caller. Writes run one after another in the
// order of the calls, and so do reads, in parallel to the writes: a recovery does not wait for a
// checkpoint that is being written. `done` runs on the event loop, never within the call, and not
// after the checkpointer is destroyed.
class Checkpointer {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Checkpointer() = default;

  // Writes `state`, a slice of a checkpoint. When the checkpoint is complete, removes all but the
  // newest `keep`. None: slices of other learners are still missing.
  virtual void Save(CheckpointLabel label, StateSlice slice, std::shared_ptr<const StateCopy> state,
                    int keep, Done<std::optional<Manifest>> done) = 0;
  // Repeats the end of Save: publishes the checkpoint if all slices are there, and prunes.
  virtual void Publish(CheckpointLabel label, int slices, int keep,
                       Done<std::optional<Manifest>> done) = 0;
  virtual void FindNewest(Done<StoredCheckpoint> done) = 0;        // kNotFound: there is none
  virtual void Restore(JobIdentity job, Done<Restored> done) = 0;  // kNotFound: a fresh start
  // Restores the ResumeSource, for a job without a checkpoint of its own. kNotFound: the job has no
  // source and starts afresh.
  virtual void RestoreFirst(JobIdentity job, Done<Restored> done) = 0;
  virtual void ExportFinal(CheckpointLabel label, std::shared_ptr<const StateCopy> state,
                           FinalLayout layout, Done<Manifest> done) = 0;
  virtual void ExportBest(CheckpointLabel label, std::shared_ptr<const StateCopy> state,
                          FinalLayout layout, Done<Manifest> done) = 0;
  virtual void FindFinal(Done<Manifest> done) = 0;  // kNotFound: not published
};

// The checkpoint of another job from which this job starts.
struct ResumeSource {
  std::string name;  // for people
  std::unique_ptr<CheckpointStore> store;
  std::string only;  // the name of the checkpoint; empty: the newest
};
// `folder`: the folder of a job's checkpoints, or of one checkpoint.
ResumeSource ResumeFromFolder(const std::filesystem::path& folder);

// Works on two threads of its own, which both call `store`. Its destructor waits for the running
// operations and drops the queued ones.
std::unique_ptr<Checkpointer> NewThreadedCheckpointer(EventLoop& loop,
                                                      std::unique_ptr<CheckpointStore> store,
                                                      std::optional<ResumeSource> resume = {});

// For simulations: works on the loop itself, after `delay()`; for a learner that dies before that
// nothing happens. `store` is borrowed: it is the volume, which outlives learners.
std::unique_ptr<Checkpointer> NewInLoopCheckpointer(EventLoop& loop, CheckpointStore& store,
                                                    std::function<Duration()> delay);

}  // namespace pliant
