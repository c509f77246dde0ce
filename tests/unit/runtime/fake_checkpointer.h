#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "trainer/checkpoint/checkpointer.h"

namespace pliant {

// A volume with scripted answers. Like the threaded Checkpointer it writes one thing after another,
// and reads at the same time; each operation takes `time`, and uses the volume's state at its end.
class FakeCheckpointer final : public Checkpointer {
 public:
  explicit FakeCheckpointer(EventLoop& loop) : loop_(loop) {}

  Duration time = std::chrono::milliseconds(20);
  bool hangs = false;                // operations requested while it is true never end
  std::vector<std::string> asked;    // requested operations, in order
  std::optional<Error> write_error;  // error of Save and ExportFinal
  std::optional<Error> look_error;   // error of Publish
  std::set<int> slices;              // the slices written, of the only checkpoint
  // The newest checkpoint; by default there is none.
  std::function<Result<StoredCheckpoint>()> newest = [] { return None(); };
  std::function<Result<Restored>()> restored = [] { return None(); };
  std::function<Result<Restored>()> first = [] { return None(); };
  std::optional<Manifest> final_model;

  void Save(CheckpointLabel label, StateSlice slice, std::shared_ptr<const StateCopy> /*state*/,
            int keep, Done<std::optional<Manifest>> done) override {
    Enqueue(writes_free_at_,
            "save " + std::to_string(slice.index) + " keep " + std::to_string(keep),
            [this, label = std::move(label), slice, done = std::move(done)] {
              if (write_error) return done(std::unexpected(*write_error));
              slices.insert(slice.index);
              done(Published(label, slice.count));
            });
  }
  void Publish(CheckpointLabel label, int count, int /*keep*/,
               Done<std::optional<Manifest>> done) override {
    Enqueue(writes_free_at_, "publish",
            [this, label = std::move(label), count, done = std::move(done)] {
              if (look_error) return done(std::unexpected(*look_error));
              done(Published(label, count));
            });
  }
  void FindNewest(Done<StoredCheckpoint> done) override {
    Enqueue(reads_free_at_, "find newest", [this, done = std::move(done)] { done(newest()); });
  }
  void Restore(JobIdentity /*job*/, Done<Restored> done) override {
    Enqueue(reads_free_at_, "restore", [this, done = std::move(done)] { done(restored()); });
  }
  void RestoreFirst(JobIdentity /*job*/, Done<Restored> done) override {
    Enqueue(reads_free_at_, "restore first", [this, done = std::move(done)] { done(first()); });
  }
  void ExportFinal(CheckpointLabel label, std::shared_ptr<const StateCopy> /*state*/,
                   FinalLayout /*layout*/, Done<Manifest> done) override {
    Enqueue(writes_free_at_, "export", [this, label = std::move(label), done = std::move(done)] {
      if (write_error) return done(std::unexpected(*write_error));
      final_model = ManifestOf(label);
      done(*final_model);
    });
  }
  void ExportBest(CheckpointLabel label, std::shared_ptr<const StateCopy> /*state*/,
                  FinalLayout layout, Done<Manifest> done) override {
    Enqueue(writes_free_at_, "best " + layout.texts.back().text,
            [this, label = std::move(label), done = std::move(done)] {
              if (write_error) return done(std::unexpected(*write_error));
              done(ManifestOf(label));
            });
  }
  void FindFinal(Done<Manifest> done) override {
    Enqueue(reads_free_at_, "find final", [this, done = std::move(done)] {
      if (!final_model) return done(None());
      done(*final_model);
    });
  }

 private:
  static std::unexpected<Error> None() { return Fail(ErrorCode::kNotFound, "there is none"); }
  static Manifest ManifestOf(const CheckpointLabel& label) {
    return {.position = label.position, .job = label.job};
  }
  std::optional<Manifest> Published(const CheckpointLabel& label, int count) const {
    if (std::ssize(slices) < count) return std::nullopt;
    return ManifestOf(label);
  }
  void Enqueue(TimePoint& free_at, std::string name, std::function<void()> end) {
    asked.push_back(std::move(name));
    if (hangs) return;
    free_at = std::max(free_at, loop_.Now()) + time;
    loop_.PostAfter(free_at - loop_.Now(), lifetime_.Guard(std::move(end)));
  }

  EventLoop& loop_;
  TimePoint reads_free_at_{};
  TimePoint writes_free_at_{};
  const Lifetime lifetime_;
};

}  // namespace pliant
