#include "trainer/binding/learner_session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include <unistd.h>

#include "base/exceptions.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/collective/float_environment.h"
#include "trainer/cuda/cuda_memory.h"
#include "trainer/cuda/nccl_rounds.h"
#include "trainer/process/rank_launcher.h"
#include "trainer/process/signals.h"

namespace pliant {
namespace {

// If the program never fetches its lines, the oldest are dropped.
constexpr std::size_t kMaxMetricsLines = 10000;

// Signals, the log and the termination message belong to the process.
std::atomic<bool> g_open = false;

Error ProgramEnded() {
  return {ErrorCode::kCancelled, "the program ended before the training did"};
}

Status CheckBase(const BaseModel& base) {
  constexpr std::size_t kHash = 64;
  constexpr std::size_t kMaxName = 256;
  constexpr std::string_view kHex = "0123456789abcdef";
  if (base.sha256.empty()) return {};
  if (base.sha256.size() != kHash || base.sha256.find_first_not_of(kHex) != base.sha256.npos) {
    return Invalid(Format("base is \"{}\": it must be a SHA-256, as 64 lower-case hex digits",
                          base.sha256.substr(0, kHash)));
  }
  if (base.name.size() <= kMaxName) return {};
  return Invalid(
      Format("base_name has {} bytes: at most {} are possible", base.name.size(), kMaxName));
}

}  // namespace

Result<std::unique_ptr<LearnerSession>> LearnerSession::Open(Options options) {
  if (g_open.exchange(true)) {
    return pliant::Fail(ErrorCode::kConflict, "this process has a learner already: close it first");
  }
  // JSON for a job, whose logs are collected; text for a person who trains alone and reads them.
  const bool alone = std::getenv("PLIANT_COORDINATOR") == nullptr;
  log::Configure(alone ? log::Format::kText : log::Format::kJson, log::Level::kInfo);
  LaunchRanks(std::getenv);
  if (options.take_signals) HoldStopSignals();
  auto environment = ReadLearnerEnvironment(std::getenv);
  const auto refuse = [&](const Error& error) {
    FailLearner(TerminationLogPath(std::getenv), error);
    if (options.take_signals) ReleaseStopSignals();
    g_open = false;
    return std::unexpected(error);
  };
  if (!environment) return refuse(environment.error());
  // In a job the volume always wins: the other learners read it, and it outlives the pod.
  if (options.checkpoint_dir && !environment->coordinator) {
    environment->checkpoint_dir = *options.checkpoint_dir;
  }
  if (const Status writable = CheckCheckpointFolder(*environment); !writable) {
    return refuse(writable.error());
  }
  return std::unique_ptr<LearnerSession>(
      new LearnerSession(std::move(options), *std::move(environment)));
}

LearnerSession::LearnerSession(Options options, LearnerEnvironment environment)
    : name_(std::move(options.name)) {
  run_.environment = std::move(environment);
  run_.framework = std::move(options.framework);
  run_.gpu_problem = std::move(options.gpu_problem);
  run_.take_signals = options.take_signals;
  run_.keep_freed_memory = options.keep_freed_memory;
  const std::filesystem::path& checkpoints = run_.environment.checkpoint_dir;
  folder_ = checkpoints / run_.environment.job_uid;
  output_ = KeptOutput::Of(run_.environment);
  if (options.checkpoint_dir && *options.checkpoint_dir != checkpoints) {
    log::Warning("the program's checkpoint folder is not used: checkpoints go to the job's volume",
                 {{"program", options.checkpoint_dir->string()}, {"volume", checkpoints.string()}});
  }
}

LearnerSession::~LearnerSession() {
  EndProgram();
  if (program_) program_->Refuse(ProgramEnded());  // ends work that was not answered
  if (thread_.joinable()) thread_.join();
  if (run_.take_signals) ReleaseStopSignals();
  g_open = false;
}

Status LearnerSession::Describe(const Training& training) {
  if (program_) return pliant::Fail(ErrorCode::kConflict, "the learner has already started");
  RETURN_IF_ERROR(CheckBase(training.base));
  ASSIGN_OR_RETURN(const TrainingSetup setup, ResolveTraining(run_.environment, training.settings));
  ProgramInfo info{.train_samples = training.train_samples,
                   .test_samples = training.test_samples,
                   .epochs = training.epochs,
                   .name = name_,
                   .wants_evaluation_results = training.wants_evaluation_results,
                   .base = training.base,
                   .max_steps = training.max_steps,
                   .evaluate_every = training.evaluate_every};
  ASSIGN_OR_RETURN(Schedule schedule, ScheduleOf(setup, info));
  const bool alone = !run_.environment.coordinator;
  const bool bitwise = run_.environment.reproducibility == Reproducibility::kBitwise;
  forecast_.emplace(schedule, !alone ? 0 : bitwise ? setup.logical_shards : 1);
  run_.training = setup;
  schedule_ = std::move(schedule);
  info_ = std::move(info);
  return {};
}

Status LearnerSession::Register(BoundTensor tensor) {
  if (program_) return pliant::Fail(ErrorCode::kConflict, "the learner has already started");
  tensors_.push_back(std::move(tensor));
  return {};
}

Status LearnerSession::DescribeFinal(FinalLayout layout) {
  if (program_) return pliant::Fail(ErrorCode::kConflict, "the learner has already started");
  std::set<std::string_view> known;
  for (const BoundTensor& tensor : tensors_) known.insert(tensor.view.name);
  for (const auto& [tensor, name] : layout.names.value_or(std::map<std::string, std::string>())) {
    if (tensor.starts_with(kModelPrefix) && known.contains(tensor)) continue;
    return Invalid(
        Format("the final model has {}, which is no registered tensor of the model", tensor));
  }
  final_layout_ = std::move(layout);
  return {};
}

Status LearnerSession::RegisterOnDevice(BoundTensor tensor) {
  if (!tensor.view.bytes.empty()) {
    Result<CudaMemory*> device = DeviceOf(tensor.view.bytes.data());
    if (!device) {
      return std::unexpected(InContext("tensor " + tensor.view.name, std::move(device).error()));
    }
    tensor.view.device = *device;
  }
  return Register(std::move(tensor));
}

Status LearnerSession::UseStream(void* stream) {
  if (!device_) {
    return pliant::Fail(ErrorCode::kConflict,
                        "no tensor is on a GPU: register them before pliant_use_stream");
  }
  return device_->UseStream(stream);
}

Result<CudaMemory*> LearnerSession::DeviceOf(const void* device) {
  if (device_) {
    RETURN_IF_ERROR(device_->CheckOwned(device));
  } else {
    ASSIGN_OR_RETURN(std::shared_ptr<const CudaDriver> driver, CudaDriver::Open());
    ASSIGN_OR_RETURN(device_, CudaMemory::Of(std::move(driver), device));
  }
  return device_.get();
}

Result<std::vector<const std::byte*>> LearnerSession::ReadDevice(
    std::span<const std::span<const std::byte>> device) {
  constexpr std::size_t kAlignment = 64;
  const auto padded = [](std::size_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::size_t bytes = 0;
  for (const std::span<const std::byte> memory : device) bytes += padded(memory.size());
  std::vector<const std::byte*> copies(device.size(), nullptr);
  if (bytes == 0) return copies;
  CudaMemory* memory = nullptr;
  for (const std::span<const std::byte> each : device) {
    if (each.empty()) continue;
    ASSIGN_OR_RETURN(memory, DeviceOf(each.data()));
  }
  if (staging_bytes_ < bytes) {
    ASSIGN_OR_RETURN(staging_, memory->AllocateHost(bytes));
    staging_bytes_ = bytes;
  }
  std::vector<DeviceMemory::ToHost> reads;
  std::byte* next = staging_.get();
  for (std::size_t i = 0; i < device.size(); ++i) {
    reads.push_back({.device = device[i].data(), .host = {next, device[i].size()}});
    copies[i] = next;
    next += padded(device[i].size());
  }
  RETURN_IF_ERROR(memory->Mark());
  RETURN_IF_ERROR(memory->Read(reads));
  return copies;
}

std::shared_ptr<CudaGradients> LearnerSession::GradientsOnDevice() const {
  if (!device_ || !device_->program_stream()) return nullptr;
  const bool all = std::ranges::all_of(tensors_, [](const BoundTensor& tensor) {
    return tensor.role != TensorRole::kParameter || tensor.view.bytes.empty() ||
           tensor.view.device != nullptr;
  });
  if (!all) return nullptr;
  auto made = CudaGradients::Make(device_, BoundProgram::GradientSizes(tensors_));
  if (!made) {
    log::Warning("gradients are summed in host memory, which is slower",
                 {{"why", made.error().message}});
    return nullptr;
  }
  const LearnerEnvironment& environment = run_.environment;
  if (environment.coordinator && environment.exchange_over_nccl) {
    auto rounds = NcclRounds::Make(device_, {.max_shard = environment.step_timeout});
    if (rounds) {
      (*made)->UseRounds(*std::move(rounds));
    } else {
      log::Warning("gradients travel through host memory, which is slower",
                   {{"why", rounds.error().message}});
    }
  }
  return *std::move(made);
}

int LearnerSession::registered(TensorRole role) const {
  return static_cast<int>(std::ranges::count(tensors_, role, &BoundTensor::role));
}

Status LearnerSession::Start() {
  if (program_ || ending() != nullptr) {
    return pliant::Fail(ErrorCode::kConflict, "the learner has already started");
  }
  if (!info_) {
    return pliant::Fail(ErrorCode::kConflict,
                        "the training was not described: call pliant_describe first");
  }
  RETURN_IF_ERROR(BoundProgram::Check(tensors_));
  ASSIGN_OR_RETURN(std::unique_ptr<BoundProgram> program,
                   BoundProgram::Make(*info_, tensors_, device_, GradientsOnDevice()));
  program->SetFinalLayout(final_layout_);
  const auto set_program = [this](std::unique_ptr<BoundProgram> given) {
    const std::lock_guard lock(mutex_);  // for EndProgram
    program_ = std::move(given);
  };
  set_program(std::move(program));
  if (device_) run_.broken = [device = device_] { return device->broken(); };
  Status begun = CatchAll([this] { thread_ = std::jthread([this] { Run(); }); });
  if (!begun) set_program(nullptr);  // no runtime would ever give it work
  return begun;
}

// The runtime's thread.
void LearnerSession::Run() {
  const FloatEnvironment environment;  // also for the threads that this one starts
  Ending ending;
  if (Status trained = CatchAll([&] { Train(ending); }); !trained) {
    ending = {.message = std::move(trained).error().message, .parameters_sha256 = ""};
  }
  {
    const std::lock_guard lock(mutex_);
    control_.reset();
    ending_ = std::move(ending);
  }
  program_->End();
}

void LearnerSession::Train(Ending& ending) {
  RunLearnerOptions run = run_;
  run.on_metrics_line = [this](std::string_view line) {
    const std::lock_guard lock(mutex_);
    metrics_lines_.emplace_back(line);
    if (metrics_lines_.size() > kMaxMetricsLines) metrics_lines_.pop_front();
  };
  run.on_start = [this](LearnerControl control) {
    const std::lock_guard lock(mutex_);
    if (failure_) control.fail(*failure_);
    if (leave_) control.leave();
    if (learners_asked_) control.ask_for_learners(*learners_asked_);
    control_ = std::move(control);
  };
  run.on_exit = [this, &ending](const LearnerExit& exit, int exit_code) {
    if (exit.program_hangs && output_) output_->Flush();
    ending = {.reason = exit.reason,
              .interrupted = exit.reason != LeftReason::kFailed && exit_code != 0,
              .exit_code = exit_code,
              .step = exit.step,
              .message = exit.message,
              .parameters_sha256 = exit.parameters_sha256};
  };
  RunLearner(program_->thread(), run);
}

Result<bool> LearnerSession::Next(std::optional<Duration> most) {
  ASSIGN_OR_RETURN(const bool taken, program_->Next(most));
  if (!taken) return false;
  if (const auto* const shard = std::get_if<ShardWork>(program_->work())) {
    forecast_->OnTask(*shard->task);
  }
  return true;
}

Status LearnerSession::ReportSums(ReportedSums sums) {
  if (sums.weight && run_.environment.max_batch_size) {
    return Invalid(
        "the batch grows by the noise of samples (spec.training.batch.mode or PLIANT_BATCH_MODE is "
        "FromState), but this program weighs by something else, such as tokens: use the mode "
        "Constant");
  }
  program_->reported() = std::move(sums);
  return {};
}

Status LearnerSession::ShardDoneOn(double samples, const double* sums) {
  const std::size_t count = program_->reported().device_sums();
  const std::span bytes(reinterpret_cast<const std::byte*>(sums), count * sizeof(double));
  if (program_->device_gradients() != nullptr) {
    RETURN_IF_ERROR(device_->CheckOwned(sums));
    return program_->ShardDone(samples, bytes);
  }
  ASSIGN_OR_RETURN(const std::vector<const std::byte*> read, ReadDevice(std::array{bytes}));
  std::vector<double> values(count);
  std::memcpy(values.data(), read.front(), bytes.size());
  return program_->ShardDone(program_->reported().Take(samples, values));
}

const LearnerSession::Ending* LearnerSession::ending() const {
  const std::lock_guard lock(mutex_);
  return ending_ ? &*ending_ : nullptr;  // written once
}

std::optional<std::string> LearnerSession::NextMetricsLine() {
  const std::lock_guard lock(mutex_);
  if (metrics_lines_.empty()) return std::nullopt;
  std::string line = std::move(metrics_lines_.front());
  metrics_lines_.pop_front();
  return line;
}

void LearnerSession::Fail(const Error& error) {
  if (!program_) {  // the runtime never ran
    const int exit_code = FailLearner(run_.environment.termination_log, error);
    const std::lock_guard lock(mutex_);
    ending_ = Ending{.reason = LeftReason::kFailed,
                     .exit_code = exit_code,
                     .message = error.message,
                     .parameters_sha256 = ""};
    return;
  }
  if (FailRuntime(error)) program_->Refuse(error);
}

bool LearnerSession::FailRuntime(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (ending_ || failure_) return false;
  failure_ = error;
  if (control_) control_->fail(error);
  return true;
}

void LearnerSession::EndProgram() {
  FailRuntime(ProgramEnded());
  const std::lock_guard lock(mutex_);
  if (program_) program_->Close(ProgramEnded());
}

void LearnerSession::Leave() {
  const std::lock_guard lock(mutex_);
  leave_ = true;
  if (control_) control_->leave();
}

void LearnerSession::AskForLearners(int learners) {
  const std::lock_guard lock(mutex_);
  learners_asked_ = learners;
  if (control_) control_->ask_for_learners(learners);
}

}  // namespace pliant
