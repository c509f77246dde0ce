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

// Requests of other threads to a running learner. Any thread; they do nothing once it has ended.
struct LearnerControl {
  std::function<void()> leave;      // at the next boundary, as SIGTERM does
  std::function<void(Error)> fail;  // at once
  // How many learners the program wants to train on; 0: all that there are.
  std::function<void(int)> ask_for_learners;
};

struct RunLearnerOptions {
  LearnerEnvironment environment;
  TrainingSetup training;
  // Receives every line of metrics.jsonl that this learner writes. On the event loop's thread.
  std::function<void(std::string_view line)> on_metrics_line;
  std::string framework;    // "libtorch 2.6.0": equal on all learners, written to checkpoints
  std::string gpu_problem;  // why it cannot use the GPUs that its container holds; "": no problem
  bool take_signals = true;
  // Calls KeepFreedMemory, which changes the whole process permanently: only for a process that
  // belongs to this program.
  bool keep_freed_memory = false;
  // Called on the calling thread: before the training begins, and when its result is known. If the
  // program hangs, the process ends right after on_exit.
  std::function<void(LearnerControl)> on_start;
  // Whether the hardware that the program needs has failed. Asked when the learner has failed.
  std::function<bool()> broken;
  std::function<void(const LearnerExit&, int exit_code)> on_exit;
};

// Draws the nonce of a starting learner.
std::uint64_t DrawNonce();

// kInvalid: a program that trains alone cannot write its checkpoints. Otherwise that would show
// only at the first of them. Not checked for a job: its volume may hang, and its checkpoints report
// what is wrong with it.
Status CheckCheckpointFolder(const LearnerEnvironment& environment);

// Keeps the output of a job's learner next to the checkpoints while this object lives: its log, and
// the text that is passed to Keep.
class KeptOutput {
 public:
  // nullptr without a job: a program that trains alone has a terminal.
  static std::unique_ptr<KeptOutput> Of(const LearnerEnvironment& environment);
  ~KeptOutput();
  KeptOutput(const KeptOutput&) = delete;
  KeptOutput& operator=(const KeptOutput&) = delete;

  // Any thread; never waits for the file.
  void Keep(std::string_view text) { keeper_->Keep(text); }
  // For a process that ends without destroying this.
  void Flush() { keeper_->Flush(); }

 private:
  explicit KeptOutput(std::unique_ptr<OutputKeeper> keeper);
  const std::unique_ptr<OutputKeeper> keeper_;
};

// Trains until the job is complete or this learner has to leave, as a member of its job or, without
// a coordinator, alone. SIGTERM (alone also SIGINT) makes it leave at the next boundary; alone it
// writes a checkpoint first, and SIGINT's exit code is then 130. Writes the termination message.
// Returns the exit code of docs/contracts.md §3. The calling thread becomes the runtime's: it takes
// signals, sends heartbeats and serves peers, while the program computes on `thread`. Ends the
// process instead of returning if one call to the program takes longer than the job's step timeout.
int RunLearner(ProgramThread& thread, const RunLearnerOptions& options);
// The same, with a thread that calls `program`.
int RunLearner(Program& program, const RunLearnerOptions& options);

// For failures before RunLearner (the model cannot be built, a setting is wrong): logs the error,
// writes the termination message and returns the exit code: 2 for kInvalid and kNotFound, which a
// retry does not fix, else 1.
int FailLearner(const std::filesystem::path& termination_log, const Error& error);

}  // namespace pliant
