#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/process/learner_environment.h"
#include "trainer/process/output_keeper.h"
#include "trainer/process/training_setup.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/learner_loop.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {

// What other threads may ask of a running learner. Any thread; does nothing once it has ended.
struct LearnerControl {
  std::function<void()> leave;      // at the next boundary, as SIGTERM does
  std::function<void(Error)> fail;  // at once
  // The program wants to train on so many; 0: on as many as there are.
  std::function<void(int)> ask_for_learners;
};

struct RunLearnerOptions {
  LearnerEnvironment environment;
  TrainingSetup training;
  // Sees every line of metrics.jsonl that this learner writes. On the event loop's thread.
  std::function<void(std::string_view line)> on_metrics_line;
  std::string framework;  // "libtorch 2.6.0": equal on all learners, written to checkpoints
  std::string
      gpu_problem;  // why it cannot use the GPUs that its container holds; "": nothing to tell
  bool take_signals = true;
  // KeepFreedMemory is for the whole process, and for good: only where that is this program's.
  bool keep_freed_memory = false;
  // On the calling thread: before the training begins, and when it is clear how it ended. Where the
  // program hangs the process ends right after.
  std::function<void(LearnerControl)> on_start;
  std::function<void(const LearnerExit&, int exit_code)> on_exit;
};

// Of a learner that starts.
std::uint64_t DrawNonce();

// kInvalid: who trains alone could not write its checkpoints, which would show at the first of them
// only. A job's volume may hang: its checkpoints say what is wrong with it.
Status CheckCheckpointFolder(const LearnerEnvironment& environment);

// What a learner of a job says is kept beside the checkpoints, from its making to its end: its log,
// and what else is put there.
class KeptOutput {
 public:
  // Nothing where there is no job: who trains alone has a terminal.
  static std::unique_ptr<KeptOutput> Of(const LearnerEnvironment& environment);
  ~KeptOutput();
  KeptOutput(const KeptOutput&) = delete;
  KeptOutput& operator=(const KeptOutput&) = delete;

  // Any thread; never waits for the file.
  void Keep(std::string_view text) { keeper_->Keep(text); }
  // Before a process ends that will not destroy it.
  void Flush() { keeper_->Flush(); }

 private:
  explicit KeptOutput(std::unique_ptr<OutputKeeper> keeper);
  const std::unique_ptr<OutputKeeper> keeper_;
};

// Trains until the job is complete or this learner is to leave, as a member of its job or, without
// a coordinator, alone. SIGTERM (alone also SIGINT) makes it leave at the next boundary; alone it
// writes a checkpoint first, and SIGINT's exit code is then 130. Writes the termination message.
// Returns the exit code of docs/contracts.md §3. The calling thread becomes the runtime's: it takes
// signals, sends heartbeats and serves peers, while the program computes on `thread`. Does not
// return, but ends the process, when the program has been at one piece of work for longer than the
// job's step timeout.
int RunLearner(ProgramThread& thread, const RunLearnerOptions& options);
// The same, with a thread that calls `program`.
int RunLearner(Program& program, const RunLearnerOptions& options);

// For what goes wrong before that (the model cannot be built, a setting is wrong): logs it, writes
// the termination message and returns the exit code: 2 for kInvalid and kNotFound, which trying
// again does not mend, else 1.
int FailLearner(const std::filesystem::path& termination_log, const Error& error);

}  // namespace pliant
