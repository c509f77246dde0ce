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

// The thread of a program that fetches its work: the runtime's operations are stepped by who calls
// Next and Answer.
class PulledThread final : public ProgramThread {
 public:
  // Borrows `program`.
  explicit PulledThread(ProgramView& program) : program_(program) {}

  // ---- ProgramThread: the runtime's thread ----
  ProgramView& program() override { return program_; }
  void Run(Operation& operation, Over over) override;
  void Stop() override;

  // ---- The program's thread ----

  // Waits for work, at most so long (without `max`: for ever). False: none in this time, or no
  // more. The work before must have been answered.
  bool Next(std::optional<Duration> max);
  // What is to be answered; nullptr: nothing.
  const Work* work() const { return work_ ? &*work_ : nullptr; }
  // How the work has ended.
  void Answer(Result<ShardSums> sums);
  // Instead of any answer, and when there is none to give: no work is done from now on, and each
  // operation ends with this error.
  void Refuse(const Error& error);

  // ---- Any thread ----

  // As Refuse, but what the program is at is answered first: it gets no more work.
  void Close(const Error& error);
  // Nothing more comes.
  void End();

 private:
  struct Given {
    Operation* operation = nullptr;
    Over over;
  };

  // What is given is stepped. False: to its end.
  bool Step();
  std::optional<Error> refusal();
  // What is given is over.
  void Finish(Status done);
  // Nobody is at what is given.
  void ReleaseProgram();

  ProgramView& program_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  // From Run to the end of the operation. Finish empties it before it calls `over`, which may lead
  // to the next Run at once.
  std::optional<Given> given_;
  // The program's thread steps given_, has work of it at hand, or calls its `over`: nobody else
  // touches a given_ that it found then.
  bool at_it_ = false;
  std::optional<Error> refusal_;
  bool ended_ = false;

  std::optional<Work> work_;  // the program's thread only
};

}  // namespace pliant
