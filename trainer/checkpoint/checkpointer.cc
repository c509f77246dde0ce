#include "trainer/checkpoint/checkpointer.h"

#include <algorithm>
#include <utility>

#include "base/exceptions.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "base/workers.h"
#include "trainer/checkpoint/file_store.h"

namespace pliant {
namespace {

// `work` uses the store; `report` then runs on the loop.
struct Operation {
  std::function<void(CheckpointStore&)> work;
  std::function<void()> report;
};

enum Lane { kReading, kWriting };

// The part that both kinds share; they differ in where and when an operation runs.
class OperationCheckpointer : public Checkpointer {
 public:
  explicit OperationCheckpointer(std::optional<ResumeSource> resume) : resume_(std::move(resume)) {}

  void Save(CheckpointLabel label, StateSlice slice, std::shared_ptr<const StateCopy> state,
            int keep, Done<std::optional<Manifest>> done) override {
    Start<std::optional<Manifest>>(
        kWriting,
        [label = std::move(label), slice, state = std::move(state), keep](CheckpointStore& store) {
          auto manifest = SaveSlice(store, label, slice, state->view());
          // Files of learners that died while writing: this makes room for the next attempt.
          if (!manifest) RemoveRemains(store, label.position);
          Prune(store, manifest, keep);
          return manifest;
        },
        std::move(done));
  }

  void Publish(CheckpointLabel label, int slices, int keep,
               Done<std::optional<Manifest>> done) override {
    Start<std::optional<Manifest>>(
        kWriting,
        [label = std::move(label), slices, keep](CheckpointStore& store) {
          auto manifest = PublishSlices(store, label, slices);
          Prune(store, manifest, keep);
          return manifest;
        },
        std::move(done));
  }

  void FindNewest(Done<StoredCheckpoint> done) override {
    Start<StoredCheckpoint>(
        kReading, [](CheckpointStore& store) { return NewestCheckpoint(store); }, std::move(done));
  }

  void Restore(JobIdentity job, Done<Restored> done) override {
    Start<Restored>(
        kReading,
        [job](CheckpointStore& store) {
          Result<Restored> restored = RestoreNewest(store, job);
          if (restored)
            for (const std::string& why : restored->passed_over)
              log::Warning("checkpoint does not verify, taking an older one", {{"reason", why}});
          return restored;
        },
        std::move(done));
  }

  void RestoreFirst(JobIdentity job, Done<Restored> done) override {
    Start<Restored>(
        kReading, [this, job](CheckpointStore&) { return RestoreFromSource(job); },
        std::move(done));
  }

  void ExportFinal(CheckpointLabel label, std::shared_ptr<const StateCopy> state,
                   FinalLayout layout, Done<Manifest> done) override {
    Start<Manifest>(
        kWriting,
        [label = std::move(label), state = std::move(state),
         layout = std::move(layout)](CheckpointStore& store) {
          return pliant::ExportFinal(store, label, state->view(), layout);
        },
        std::move(done));
  }

  void ExportBest(CheckpointLabel label, std::shared_ptr<const StateCopy> state, FinalLayout layout,
                  Done<Manifest> done) override {
    Start<Manifest>(
        kWriting,
        [label = std::move(label), state = std::move(state),
         layout = std::move(layout)](CheckpointStore& store) {
          return pliant::ExportBest(store, label, state->view(), layout);
        },
        std::move(done));
  }

  void FindFinal(Done<Manifest> done) override {
    Start<Manifest>(
        kReading, [](CheckpointStore& store) { return ReadFinal(store); }, std::move(done));
  }

 protected:
  virtual void Enqueue(Lane lane, Operation operation) = 0;

 private:
  // Only prunes after a complete checkpoint.
  static void Prune(CheckpointStore& store, const Result<std::optional<Manifest>>& saved,
                    int keep) {
    if (!saved || !*saved) return;
    const Status pruned = PruneTo(store, (*saved)->position, keep);
    // The new checkpoint is valid; the removal is retried after the next one.
    if (!pruned)
      log::Warning("old checkpoints could not be removed", {{"reason", pruned.error().message}});
  }

  Result<Restored> RestoreFromSource(const JobIdentity& job) const {
    if (!resume_) return Fail(ErrorCode::kNotFound, "there is no checkpoint to resume from");
    Result<Restored> restored = RestoreNewest(*resume_->store, job, resume_->only);
    if (restored) return restored;
    Error error = std::move(restored).error();
    // The job names this source: if it is missing, to start afresh would be wrong.
    if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kInvalid;
    return std::unexpected(InContext("resume from " + resume_->name, std::move(error)));
  }

  const std::optional<ResumeSource> resume_;  // its store is used only in the reading lane

  template <typename T>
  void Start(Lane lane, std::function<Result<T>(CheckpointStore&)> work, Done<T> done) {
    // Shared, because a Restored cannot be copied and a std::function must be; made before the
    // work, which may use up the memory.
    auto result = std::make_shared<Result<T>>(std::unexpected(Error{}));
    Enqueue(lane, {.work =
                       [work = std::move(work), result](CheckpointStore& store) {
                         *result = CatchAll([&] { return work(store); });
                       },
                   .report = [result, done = std::move(done)] { done(std::move(*result)); }});
  }
};

class ThreadedCheckpointer final : public OperationCheckpointer {
 public:
  ThreadedCheckpointer(EventLoop& loop, std::unique_ptr<CheckpointStore> store,
                       std::optional<ResumeSource> resume)
      : OperationCheckpointer(std::move(resume)), loop_(loop), store_(std::move(store)) {}
  ~ThreadedCheckpointer() override {
    for (Workers& lane : lanes_) lane.Stop();  // stop both before waiting for either
  }

 protected:
  void Enqueue(Lane lane, Operation operation) override {
    operation.report = lifetime_.Guard(std::move(operation.report));
    lanes_[lane].Run([this, operation = std::move(operation)]() mutable {
      operation.work(*store_);
      operation.work = nullptr;  // releases the state before the caller is notified
      loop_.Post(std::move(operation.report));
    });
  }

 private:
  EventLoop& loop_;
  const std::unique_ptr<CheckpointStore> store_;  // workers only
  const Lifetime lifetime_;
  Workers lanes_[2] = {Workers("checkpoints"), Workers("checkpoints")};  // last: use the store
};

class InLoopCheckpointer final : public OperationCheckpointer {
 public:
  InLoopCheckpointer(EventLoop& loop, CheckpointStore& store, std::function<Duration()> delay)
      : OperationCheckpointer(std::nullopt), loop_(loop), store_(store), delay_(std::move(delay)) {}

 protected:
  void Enqueue(Lane lane, Operation operation) override {
    TimePoint& free_at = free_at_[lane];
    free_at = std::max(free_at, loop_.Now()) + delay_();
    loop_.PostAfter(free_at - loop_.Now(),
                    lifetime_.Guard([&store = store_, operation = std::move(operation)] {
                      operation.work(store);
                      operation.report();
                    }));
  }

 private:
  EventLoop& loop_;
  CheckpointStore& store_;
  const std::function<Duration()> delay_;
  TimePoint free_at_[2];  // when all requested operations of the lane are done
  const Lifetime lifetime_;
};

}  // namespace

ResumeSource ResumeFromFolder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.has_filename() ? folder : folder.parent_path();
  const std::string last = path.filename().string();
  const bool is_checkpoint = last.starts_with(kStepPrefix);
  return {.name = path.string(),
          .store = std::make_unique<FileStore>(is_checkpoint ? path.parent_path() : path),
          .only = is_checkpoint ? last : ""};
}

std::unique_ptr<Checkpointer> NewThreadedCheckpointer(EventLoop& loop,
                                                      std::unique_ptr<CheckpointStore> store,
                                                      std::optional<ResumeSource> resume) {
  return std::make_unique<ThreadedCheckpointer>(loop, std::move(store), std::move(resume));
}

std::unique_ptr<Checkpointer> NewInLoopCheckpointer(EventLoop& loop, CheckpointStore& store,
                                                    std::function<Duration()> delay) {
  return std::make_unique<InLoopCheckpointer>(loop, store, std::move(delay));
}

}  // namespace pliant
