#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "operator/api/meta.h"

namespace pliant::controller {

// Keeps in a file what the control thread is busy with, so that the next process of the same pod
// knows at which job this one crashed. It is the last resort against a fault of ours that one job
// triggers: without it that job would stop the operator for all jobs, again and again. The file is
// memory-mapped: a note outlives the process, however that ends, and costs no system call. One
// thread.
class CrashNotes {
 public:
  // While it exists, the thread is busy with the noted work.
  class Mark {
   public:
    explicit Mark(CrashNotes* notes) : notes_(notes) {}
    Mark(Mark&& other) noexcept : notes_(std::exchange(other.notes_, nullptr)) {}
    Mark& operator=(Mark&&) = delete;
    ~Mark() {
      if (notes_ != nullptr) notes_->Note("");
    }

   private:
    CrashNotes* notes_;
  };

  // Reads the note that the process before left, and counts it as a crash. A file of another format
  // is reset. kUnavailable: it cannot be written.
  static Result<std::unique_ptr<CrashNotes>> Open(const std::string& file);
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;

  // One at a time. `notes` may be null: nothing is noted then.
  [[nodiscard]] static Mark BusyWith(CrashNotes* notes, const api::ObjectMeta& job);
  // Notes work on the plan for all jobs together.
  [[nodiscard]] static Mark BusyWithPlan(CrashNotes* notes);

  // How many processes crashed at the job as it is now: after an edit of its spec it counts as
  // another one.
  int DeathsAt(const api::ObjectMeta& job) const;
  int DeathsAtPlan() const;

 private:
  struct Page;

  CrashNotes() = default;
  void Note(std::string_view key);
  void CountDeath(const std::string& key);

  Page* page_ = nullptr;                            // the mapped file
  std::map<std::string, int, std::less<>> deaths_;  // by key, as they were when the process began
};

// After two processes have crashed at a job, the third leaves it alone, and reports that once. If
// that crashes, too, it is not tried again.
enum class Quarantine : std::uint8_t { kNone, kToBeReported, kSilent };

// Null `notes`: there are none.
Quarantine QuarantineOf(const CrashNotes* notes, const api::ObjectMeta& job);

}  // namespace pliant::controller
