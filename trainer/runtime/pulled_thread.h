#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/operation.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {

// The thread of a program that fetches its work: the calls of Next and Answer step the runtime's
// operations.
class PulledThread final : public ProgramThread {
 public:
  // Borrows `program`.
  explicit PulledThread(ProgramView& program) : program_(program) {}

  // ---- ProgramThread: the runtime's thread ----
  ProgramView& program() override { return program_; }
  void Run(Operation& operation, Over over) override;
  void Stop() override;

  // ---- The program's thread ----

  // Waits for work, at most `max` (none: for ever). False: no work in this time, or never again.
  // The previous work must have been answered.
  bool Next(std::optional<Duration> max);
  // The work to answer; nullptr: none.
  const Work* work() const { return work_ ? &*work_ : nullptr; }
  // Reports how the work has ended.
  void Answer(Result<ShardSums> sums);
  // Instead of an answer, or when there is no work to answer: no work is done from now on, and each
  // operation ends with this error.
  void Refuse(const Error& error);

  // ---- Any thread ----

  // As Refuse, but the program still answers the work that it has. It gets no more.
  void Close(const Error& error);
  // No more work comes.
  void End();

 private:
  struct Given {
    Operation* operation = nullptr;
    Over over;
  };

  // Takes the next work of given_. False: there is none.
  bool Step();
  std::optional<Error> refusal();
  // Ends given_.
  void Finish(Status done);
  // The program's thread no longer uses given_.
  void ReleaseProgram();

  ProgramView& program_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  // Set from Run to the end of the operation. Finish clears it before it calls `over`, which may
  // call the next Run at once.
  std::optional<Given> given_;
  // The program's thread steps given_, has work of it, or calls its `over`. Meanwhile no other
  // thread touches that given_.
  bool at_it_ = false;
  std::optional<Error> refusal_;
  bool ended_ = false;

  std::optional<Work> work_;  // the program's thread only
};

}  // namespace pliant
