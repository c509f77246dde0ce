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

// Checkpoints without waiting for the disk. What writes is done one after the other in the order
// asked, and so is what reads, beside it: a recovery does not wait for a checkpoint that is being
// written. `done` runs on the event loop, never within the call, and not after the checkpointer is
// destroyed.
class Checkpointer {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Checkpointer() = default;

  // Writes a slice of a checkpoint, `state`; when it is complete, removes all but the newest
  // `keep`. None: other learners' slices are missing yet.
  virtual void Save(CheckpointLabel label, StateSlice slice, std::shared_ptr<const StateCopy> state,
                    int keep, Done<std::optional<Manifest>> done) = 0;
  // As at the end of Save, once more.
  virtual void Publish(CheckpointLabel label, int slices, int keep,
                       Done<std::optional<Manifest>> done) = 0;
  virtual void FindNewest(Done<StoredCheckpoint> done) = 0;        // kNotFound: there is none
  virtual void Restore(JobIdentity job, Done<Restored> done) = 0;  // kNotFound: a fresh start
  // What a job without a checkpoint of its own begins from. kNotFound: nothing, afresh.
  virtual void RestoreFirst(JobIdentity job, Done<Restored> done) = 0;
  virtual void ExportFinal(CheckpointLabel label, std::shared_ptr<const StateCopy> state,
                           Done<Manifest> done) = 0;
  virtual void FindFinal(Done<Manifest> done) = 0;  // kNotFound: not published
};

// Where a job begins that was told to go on from another's checkpoint.
struct ResumeSource {
  std::string name;  // for people
  std::unique_ptr<CheckpointStore> store;
  std::string only;  // this checkpoint; empty: the newest
};
// `folder`: that of a job, or of one of its checkpoints.
ResumeSource ResumeFromFolder(const std::filesystem::path& folder);

// Works on two threads of its own. Destroying it waits for the operations that are under way; those
// after them are dropped. `store` takes calls of both.
std::unique_ptr<Checkpointer> NewThreadedCheckpointer(EventLoop& loop,
                                                      std::unique_ptr<CheckpointStore> store,
                                                      std::optional<ResumeSource> resume = {});

// For simulations: works on the loop itself, when `delay()` has passed; a learner that dies
// meanwhile has done nothing. `store` is borrowed: it is the volume, which outlives learners.
std::unique_ptr<Checkpointer> NewInLoopCheckpointer(EventLoop& loop, CheckpointStore& store,
                                                    std::function<Duration()> delay);

}  // namespace pliant
