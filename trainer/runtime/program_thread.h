#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/operation.h"

namespace pliant {

// The one thread on which a program does its work: the runtime's, which calls the program, or the
// program's own, which fetches the work.
class ProgramThread {
 public:
  // An error: it was not done to its end, because the program does no more work or because of an
  // exception.
  using Over = std::function<void(Status)>;

  virtual ~ProgramThread() = default;
  virtual ProgramView& program() = 0;

  // Has the program do `operation`, which lives until `over` is called: once, on any thread, maybe
  // within this call. The one before is over.
  virtual void Run(Operation& operation, Over over) = 0;
  // Of an operation that is over after the piece of work at hand: withdraws what the program is not
  // at, and waits for that piece. `over` is not called any more after it, and Run not again.
  virtual void Stop() = 0;
};

// A thread of the runtime's, which calls `program`.
std::unique_ptr<ProgramThread> NewProgramThread(Program& program);

// Has `program` do it on the calling thread.
Result<ShardSums> Call(Program& program, const Work& work);
// Does so until `operation` is over.
void Perform(Program& program, Operation& operation);

}  // namespace pliant
