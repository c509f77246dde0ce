// pliant-learner: trains a model described in YAML, as one learner of a job or alone.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/event_loop.h"
#include "base/exceptions.h"
#include "base/log.h"
#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/learner/model_file.h"
#include "trainer/learner/model_spec.h"
#include "trainer/learner/progress.h"
#include "trainer/learner/samples.h"
#include "trainer/learner/torch_program.h"
#include "trainer/process/learner_environment.h"
#include "trainer/process/rank_launcher.h"
#include "trainer/process/run_learner.h"
#include "trainer/process/signals.h"
#include "trainer/process/training_setup.h"

namespace pliant::learner {
namespace {

constexpr char kDescription[] =
    R"(Trains a model described in YAML (docs/native-learner.md), as one learner of a job or alone.

In a pod of an ElasticTrainingJob everything else comes from the environment that the operator sets. Elsewhere it
trains alone, writes checkpoints, metrics.jsonl and the final model below --checkpoint-dir, and continues from the
newest checkpoint there. Ctrl-C stops it after the current step, with a checkpoint; a second Ctrl-C stops it at once.)";

constexpr char kFooter[] = R"(A model file:
  name: digits
  input: [1, 8, 8]                      # channels, height, width
  layers:                               # conv linear batch_norm relu max_pool avg_pool flatten dropout residual
    - conv: {out: 32, kernel: 3, padding: 1}
    - relu
    - flatten
    - linear: {out: 10}
  train: {epochs: 20, batchSize: 256, seed: 0, optimizer: sgd, learningRate: 0.05, momentum: 0.9}
  data: {kind: digits, train: digits-train.csv, test: digits-test.csv}      # or cifar10, idx

Precedence: --epochs overrides the file's train.epochs. Batch size, logical shards and seed belong to the job: a file
may repeat the job's values, but other values are an error. Without a job they come from PLIANT_GLOBAL_BATCH_SIZE,
PLIANT_LOGICAL_SHARDS and PLIANT_SEED, else from the file's train.batchSize, logicalShards and seed, else they are 256,
1 and 0. With the same three values a learner alone gets the same bits as a job.

Exit codes: 0 done, or stopped by SIGTERM; 130 stopped by Ctrl-C; 1 failed, a retry may help; 2 the model, the data or
the settings are wrong, or the training diverged: the last line says what and where.

Examples:
  pliant-learner --model manifests/demo/model.yaml --checkpoint-dir /tmp/digits
  pliant-learner --model cifar10.yaml --data cifar-10-batches-bin --epochs 30)";

struct Options {
  std::filesystem::path model;
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> checkpoint_dir;
  std::optional<std::uint64_t> epochs;
  std::uint64_t progress_seconds = 10;
  std::optional<std::string> verify_replay;
};

void AddOptions(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, "the model file")->required()->type_name("FILE");
  app.add_option("--data", options.data, "folder of the data files (default: the model file's)")
      ->type_name("DIR");
  app.add_option("--epochs", options.epochs, "passes over the data, instead of the model file's")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->type_name("N");
  app.add_option("--checkpoint-dir", options.checkpoint_dir,
                 "where checkpoints go (default: PLIANT_CHECKPOINT_DIR, else ./checkpoints)")
      ->type_name("DIR");
  app.add_option(
         "--progress-seconds", options.progress_seconds,
         "seconds between log lines with the progress, without a job and a terminal; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{86'400}))
      ->type_name("N");
  app.add_option("--verify-replay", options.verify_replay,
                 "do not train: compute the steps from one checkpoint to later ones again, and "
                 "compare. Exit code 1: they differ. Also set by PLIANT_VERIFY_REPLAY")
      ->type_name("STEP[-STEP]");
}

// Sets OPENBLAS_NUM_THREADS and restarts the program, since OpenBLAS starts its threads while the
// program is loaded, before main. The learner computes on one thread, and others would receive the
// signals that it holds for the runtime.
void StartAgainUnlessBlasHasOneThread(char** argv) {
  const char* threads = std::getenv("OPENBLAS_NUM_THREADS");
  if (threads != nullptr && std::string_view(threads) == "1") return;
  setenv("OPENBLAS_NUM_THREADS", "1", /*replace=*/1);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  execv(self.c_str(), argv);
  log::Warning("BLAS may use several threads", {{"cause", "the program could not restart itself"}});
}

ProgramSettings SettingsOf(const TrainSpec& train) {
  return {.global_batch_size = train.batch_size,
          .logical_shards = train.logical_shards,
          .seed = train.seed,
          .names = {.global_batch_size = {.program = "train.batchSize of the model",
                                          .job = "globalBatchSize of the job"},
                    .logical_shards = {.program = "train.logicalShards of the model",
                                       .job = "logicalShards of the job"},
                    .seed = {.program = "train.seed of the model", .job = "seed of the job"}}};
}

Result<std::unique_ptr<TorchProgram>> BuildProgram(const Options& options, const ModelSpec& model,
                                                   const TrainingSetup& training) {
  const std::filesystem::path folder = options.data.value_or(options.model.parent_path());
  ASSIGN_OR_RETURN(Samples train, ReadSamples(model.data, model.data.train, folder));
  ASSIGN_OR_RETURN(Samples test, ReadSamples(model.data, model.data.test, folder));
  const std::uint64_t steps_per_epoch = StepsPerEpoch(train.count(), training.global_batch_size);
  return TorchProgram::Create(model, std::move(train), std::move(test),
                              {.seed = training.seed, .steps_per_epoch = steps_per_epoch});
}

// At a terminal one line that is redrawn, elsewhere a log line every --progress-seconds.
std::function<void(std::string_view)> ShowProgress(const Options& options, std::uint64_t epochs) {
  const auto progress = std::make_shared<Progress>(epochs);
  if (isatty(STDERR_FILENO) != 0) {
    return [progress](std::string_view line) {
      progress->OnMetricsLine(line);
      log::ShowStatus(progress->StatusLine());
    };
  }
  const auto pace = std::make_shared<Pace>(std::chrono::seconds(options.progress_seconds));
  return [progress, pace](std::string_view line) {
    progress->OnMetricsLine(line);
    if (!progress->loss() || !pace->Due(MonotonicNow())) return;
    log::Info("progress", {{"epoch", progress->epoch()},
                           {"step", progress->step()},
                           {"loss", *progress->loss()},
                           {"samplesPerSecond", progress->samples_per_second().value_or(0)},
                           {"secondsLeft", progress->seconds_left().value_or(0)}});
  };
}

// Creates `output`, which also stores the log from then on.
Result<int> Train(const Options& options, std::unique_ptr<KeptOutput>& output) {
  RunLearnerOptions run;
  ASSIGN_OR_RETURN(run.environment, ReadLearnerEnvironment([&](const char* name) -> const char* {
                     const bool replay =
                         options.verify_replay && std::string_view(name) == "PLIANT_VERIFY_REPLAY";
                     return replay ? options.verify_replay->c_str() : std::getenv(name);
                   }));
  if (options.checkpoint_dir) run.environment.checkpoint_dir = *options.checkpoint_dir;
  RETURN_IF_ERROR(CheckCheckpointFolder(run.environment));
  output = KeptOutput::Of(run.environment);
  ASSIGN_OR_RETURN(ModelSpec model, ReadModelFile(options.model));
  ASSIGN_OR_RETURN(run.training, ResolveTraining(run.environment, SettingsOf(model.train)));
  if (options.epochs) model.train.epochs = *options.epochs;
  run.framework = TorchVersion();
  ASSIGN_OR_RETURN(const std::unique_ptr<TorchProgram> program,
                   BuildProgram(options, model, run.training));
  if (!run.environment.coordinator) {
    run.on_metrics_line = ShowProgress(options, model.train.epochs);
  }
  run.keep_freed_memory = true;
  run.on_exit = [&output](const LearnerExit& exit, int) {
    if (exit.program_hangs && output) output->Flush();
  };
  const int code = RunLearner(*program, run);
  log::ShowStatus("");
  return code;
}

int Main(int argc, char** argv) {
  log::Configure(isatty(STDERR_FILENO) != 0 ? log::Format::kText : log::Format::kJson,
                 log::Level::kInfo);
  LaunchRanks(std::getenv);
  HoldStopSignals();
  StartAgainUnlessBlasHasOneThread(argv);
  CLI::App app(kDescription, "pliant-learner");
  app.footer(kFooter);
  Options options;
  AddOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return FailLearner(TerminationLogPath(std::getenv), {ErrorCode::kInvalid, error.what()});
  }
  std::unique_ptr<KeptOutput> output;
  const Result<int> code = CatchAll([&] { return Train(options, output); });
  return code ? *code : FailLearner(TerminationLogPath(std::getenv), code.error());
}

}  // namespace
}  // namespace pliant::learner

int main(int argc, char** argv) { return pliant::learner::Main(argc, argv); }
