#pragma once

#include <string>

#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/process/run_learner.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {

// Computes steps of a job again, alone, from one of its checkpoints (options.environment.replay),
// and compares with later checkpoints of the job. Returns what was the same. kCorrupt: what was
// not. The volume is only read. In an equal process a program gets the same bits for the same
// steps; if not, memory, a device or the program is faulty. With another kind of CPU, other
// libraries or another number of threads the bits may differ without a fault.
Result<std::string> VerifyReplay(ProgramThread& thread, const Schedule& schedule,
                                 const RunLearnerOptions& options);

}  // namespace pliant
