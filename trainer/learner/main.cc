// pliant-learner: trains a model described in YAML, as one learner of a job or alone.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/log.h"
#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/learner/model_file.h"
#include "trainer/learner/model_spec.h"
#include "trainer/learner/samples.h"
#include "trainer/learner/torch_program.h"
#include "trainer/runtime/learner_environment.h"
#include "trainer/runtime/run_learner.h"
#include "trainer/runtime/signals.h"

namespace pliant::learner {
namespace {

constexpr char kDescription[] =
    "Trains a model described in YAML (docs/native-learner.md).\n"
    "In a pod of an ElasticTrainingJob everything else comes from the environment that the "
    "operator "
    "sets.\n"
    "Elsewhere it trains alone, writes checkpoints, metrics.jsonl and the final model below "
    "--checkpoint-dir,\n"
    "and takes up the newest checkpoint that it finds there.";

constexpr std::uint64_t kGlobalBatchSizeDefault = 256;  // where neither job nor model says it

struct Options {
  std::filesystem::path model;
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> checkpoint_dir;
  std::optional<std::uint64_t> epochs;
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
}

// OpenBLAS starts its threads while the program is loaded, before main. The learner computes on one
// thread, and others would take the signals that it holds for the runtime.
void StartAgainUnlessBlasHasOneThread(char** argv) {
  const char* threads = std::getenv("OPENBLAS_NUM_THREADS");
  if (threads != nullptr && std::string_view(threads) == "1") return;
  setenv("OPENBLAS_NUM_THREADS", "1", /*replace=*/1);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  execv(self.c_str(), argv);
  log::Warning("BLAS may use several threads", {{"cause", "the program could not start again"}});
}

Result<std::unique_ptr<TorchProgram>> BuildProgram(const Options& options, const ModelSpec& model,
                                                   const RunLearnerOptions& run) {
  const std::filesystem::path folder = options.data.value_or(options.model.parent_path());
  ASSIGN_OR_RETURN(Samples train, ReadSamples(model.data, model.data.train, folder));
  ASSIGN_OR_RETURN(Samples test, ReadSamples(model.data, model.data.test, folder));
  const std::uint64_t steps_per_epoch = StepsPerEpoch(train.count(), run.global_batch_size);
  return TorchProgram::Create(model, std::move(train), std::move(test),
                              {.seed = run.seed, .steps_per_epoch = steps_per_epoch});
}

Result<int> Train(const Options& options) {
  RunLearnerOptions run;
  ASSIGN_OR_RETURN(run.environment, ReadLearnerEnvironment(std::getenv));
  if (options.checkpoint_dir) run.environment.checkpoint_dir = *options.checkpoint_dir;
  ASSIGN_OR_RETURN(ModelSpec model, ReadModelFile(options.model));
  RETURN_IF_ERROR(CheckAgainstJob(
      model.train,
      {.global_batch_size = run.environment.global_batch_size, .seed = run.environment.seed}));
  if (options.epochs) model.train.epochs = *options.epochs;
  run.global_batch_size = run.environment.global_batch_size.value_or(
      model.train.batch_size.value_or(kGlobalBatchSizeDefault));
  run.seed = run.environment.seed.value_or(model.train.seed.value_or(0));
  run.framework = TorchVersion();
  ASSIGN_OR_RETURN(const std::unique_ptr<TorchProgram> program, BuildProgram(options, model, run));
  return RunLearner(*program, run);
}

int Main(int argc, char** argv) {
  HoldStopSignals();
  StartAgainUnlessBlasHasOneThread(argv);
  CLI::App app(kDescription, "pliant-learner");
  Options options;
  AddOptions(app, options);
  log::Configure(isatty(STDERR_FILENO) != 0 ? log::Format::kText : log::Format::kJson,
                 log::Level::kInfo);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return FailLearner(TerminationLogPath(std::getenv), {ErrorCode::kInvalid, error.what()});
  }
  const Result<int> code = Train(options);
  return code ? *code : FailLearner(TerminationLogPath(std::getenv), code.error());
}

}  // namespace
}  // namespace pliant::learner

int main(int argc, char** argv) { return pliant::learner::Main(argc, argv); }
