#pragma once

#include <string>

#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/process/run_learner.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {

// Computes steps of a job again, alone, from one of its checkpoints (options.environment.replay),
// and compares with those that the job wrote later. Returns what was the same. kCorrupt: what was
// not. The volume is only read. A program that meets the same steps in the same process gets the
// same bits, or something is wrong: with memory, with a device, or with the program. Other kinds of
// CPU, libraries or numbers of threads may differ without anything being wrong.
Result<std::string> VerifyReplay(ProgramThread& thread, const Schedule& schedule,
                                 const RunLearnerOptions& options);

}  // namespace pliant
