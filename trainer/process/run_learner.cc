#include "trainer/process/run_learner.h"

#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/exceptions.h"
#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/process/freed_memory.h"
#include "trainer/process/learner_process.h"
#include "trainer/process/replay.h"
#include "trainer/process/signals.h"
#include "trainer/process/termination_message.h"

namespace pliant {
namespace {

constexpr int kInterruptedExitCode = 130;  // as shells report SIGINT

int ExitCodeOf(ErrorCode code) {
  return code == ErrorCode::kInvalid || code == ErrorCode::kNotFound ? 2 : 1;
}

void WriteTermination(const std::filesystem::path& path, const TerminationMessage& message) {
  if (path.empty()) return;
  if (const Status written = WriteTerminationMessage(path, message); !written) {
    log::Warning("no termination message", {{"error", written.error().message}});
  }
}

int EndWith(const LearnerExit& exit, const std::filesystem::path& termination_log,
            const std::function<bool()>& broken) {
  const bool failed = exit.reason == LeftReason::kFailed;
  WriteTermination(termination_log, {.reason = exit.reason,
                                     .broken = failed && broken && broken(),
                                     .step = exit.step,
                                     .message = exit.message,
                                     .parameters_sha256 = exit.parameters_sha256});
  log::Write(failed ? log::Level::kError : log::Level::kInfo, "learner ends",
             {{"reason", ToString(exit.reason)},
              {"step", exit.step},
              {"cause", exit.message},
              {"parametersSha256", exit.parameters_sha256}});
  return failed ? ExitCodeOf(exit.code) : 0;
}

}  // namespace

std::uint64_t DrawNonce() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32U) | random();
}

std::unique_ptr<KeptOutput> KeptOutput::Of(const LearnerEnvironment& environment) {
  if (!environment.coordinator) return nullptr;
  std::string name = environment.learner + "-" + environment.pod_uid;
  if (environment.local_rank > 0) name += Format(".{}", environment.local_rank);
  const std::filesystem::path file =
      environment.checkpoint_dir / environment.job_uid / "logs" / (name + ".log");
  return std::unique_ptr<KeptOutput>(new KeptOutput(NewOutputKeeper(file)));
}

KeptOutput::KeptOutput(std::unique_ptr<OutputKeeper> keeper) : keeper_(std::move(keeper)) {
  log::CopyLinesTo([this](std::string_view line) { keeper_->Keep(line); });
}

KeptOutput::~KeptOutput() { log::CopyLinesTo(nullptr); }

Status CheckCheckpointFolder(const LearnerEnvironment& environment) {
  if (environment.coordinator || environment.replay) return {};
  const std::filesystem::path folder = environment.checkpoint_dir / environment.job_uid;
  const auto refuse = [&](std::string_view why) {
    return Invalid(
        Format("checkpoints cannot be written to {}: {}. Name another folder by the "
               "program's setting or PLIANT_CHECKPOINT_DIR",
               folder.string(), why));
  };
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return refuse(error.message());
  const std::filesystem::path probe = folder / Format(".probe-{:x}", DrawNonce());
  const Status written = WriteFileAtomically(probe, "can this folder be written to?\n");
  std::filesystem::remove(probe, error);
  if (!written) return refuse(written.error().message);
  return {};
}

int FailLearner(const std::filesystem::path& termination_log, const Error& error) {
  return EndWith({.reason = LeftReason::kFailed, .code = error.code, .message = error.message},
                 termination_log, nullptr);
}

namespace {

int End(const RunLearnerOptions& options, const LearnerExit& exit, bool interrupted = false) {
  int code = EndWith(exit, options.environment.termination_log, options.broken);
  if (interrupted && exit.reason == LeftReason::kDrained) code = kInterruptedExitCode;
  if (options.on_exit) options.on_exit(exit, code);
  return code;
}

int Refuse(const RunLearnerOptions& options, const Error& error) {
  return End(options,
             {.reason = LeftReason::kFailed, .code = error.code, .message = error.message});
}

int Train(ProgramThread& thread, const RunLearnerOptions& options) {
  const LearnerEnvironment& environment = options.environment;
  const auto refuse = [&](const Error& error) { return Refuse(options, error); };
  auto schedule = ScheduleOf(options.training, thread.program().info());
  if (!schedule) return refuse(schedule.error());
  if (environment.replay) {
    const auto verdict = VerifyReplay(thread, *schedule, options);
    if (!verdict) return refuse(verdict.error());
    return End(options, {.reason = LeftReason::kDrained, .message = *verdict});
  }

  LearnerProcess process(thread, options, *schedule);
  if (const Status prepared = process.Prepare(); !prepared) return refuse(prepared.error());
  const std::optional<LearnerExit> exit = process.Run();
  if (!exit) {
    if (options.on_exit) options.on_exit({.message = "interrupted"}, kInterruptedExitCode);
    return kInterruptedExitCode;
  }
  const int code = End(options, *exit, process.interrupted());
  // The program's thread cannot be joined, or its device does not end: they still use parts of
  // `process`.
  if (exit->program_hangs || !process.Stop()) std::_Exit(code);
  return code;
}

}  // namespace

int RunLearner(ProgramThread& thread, const RunLearnerOptions& options) {
  if (options.take_signals) HoldStopSignals();
  if (options.keep_freed_memory) KeepFreedMemory();
  const auto code = CatchAll([&]() -> Result<int> { return Train(thread, options); });
  // Train has released its memory by now: there is enough for the termination message.
  return code ? *code : Refuse(options, code.error());
}

int RunLearner(Program& program, const RunLearnerOptions& options) {
  return RunLearner(*NewProgramThread(program), options);
}

}  // namespace pliant
