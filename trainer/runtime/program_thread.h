#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/operation.h"

namespace pliant {

// The one thread on which a program does its work: a thread of the runtime, which calls the
// program, or the program's own, which fetches the work.
class ProgramThread {
 public:
  // The operation is over. An error: it was not completed, because the program does no more work or
  // because of an exception.
  using Over = std::function<void(Status)>;

  virtual ~ProgramThread() = default;
  virtual ProgramView& program() = 0;

  // Has the program do `operation`, which lives until `over` is called: once, on any thread, maybe
  // within this call. The previous operation is over.
  virtual void Run(Operation& operation, Over over) = 0;
  // Stops an operation that is over after the current piece of work: withdraws work that the
  // program has not begun, and waits for that piece. Afterwards `over` is not called, and Run must
  // not be.
  virtual void Stop() = 0;
};

// A thread of the runtime, which calls `program`.
std::unique_ptr<ProgramThread> NewProgramThread(Program& program);

// Has `program` do `work` on the calling thread.
Result<ShardSums> Call(Program& program, const Work& work);
// Does all work of `operation` in this way.
void Perform(Program& program, Operation& operation);

}  // namespace pliant
