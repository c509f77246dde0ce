#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "trainer/binding/bound_program.h"
#include "trainer/binding/shard_forecast.h"
#include "trainer/cuda/cuda_memory.h"
#include "trainer/data/schedule.h"
#include "trainer/process/learner_environment.h"
#include "trainer/process/run_learner.h"
#include "trainer/process/training_setup.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant {

// A learner whose program owns its loop: the implementation of pliant.h. The runtime runs on a
// thread of its own. One thread uses it, except for Leave, AskForLearners, KeepOutput and
// EndProgram.
class LearnerSession {
 public:
  struct Options {
    std::string name = "program";
    std::string framework = "unknown";
    std::string gpu_problem;
    std::optional<std::filesystem::path> checkpoint_dir;
    bool take_signals = true;
    bool keep_freed_memory = false;
  };
  struct Training {
    std::uint64_t train_samples = 0;
    std::uint64_t test_samples = 0;
    std::uint64_t epochs = 0;
    ProgramSettings settings;
    bool wants_evaluation_results = false;
    BaseModel base;
    std::uint64_t max_steps = 0;
    std::uint64_t evaluate_every = 0;
  };
  struct Ending {
    LeftReason reason = LeftReason::kFailed;
    bool interrupted = false;
    int exit_code = 1;
    std::uint64_t step = 0;
    std::string message;
    std::string parameters_sha256;
  };

  // kConflict: this process has one already.
  static Result<std::unique_ptr<LearnerSession>> Open(Options options);
  // Ends the learner if it has not ended, and waits for the runtime's thread.
  ~LearnerSession();
  LearnerSession(const LearnerSession&) = delete;
  LearnerSession& operator=(const LearnerSession&) = delete;

  const LearnerEnvironment& environment() const { return run_.environment; }
  // The folder of the job's checkpoints.
  const std::filesystem::path& folder() const { return folder_; }

  // ---- Before Start. kConflict: it was called later ----
  Status Describe(const Training& training);
  Status Register(BoundTensor tensor);
  // The same for memory of a GPU. kInvalid: it is not, or other tensors are on another GPU.
  Status RegisterOnDevice(BoundTensor tensor);
  // kInvalid: it names a tensor that is not registered. Call it after these are.
  Status DescribeFinal(FinalLayout layout);
  Status Start();
  // From now on the program queues its work on this stream. kConflict: no tensor is on a GPU.
  Status UseStream(void* stream);

  int registered(TensorRole role) const;
  // nullptr before Describe.
  const Schedule* schedule() const { return schedule_ ? &*schedule_ : nullptr; }

  // ---- After Start ----
  // nullptr before Start.
  BoundProgram* program() { return program_.get(); }
  // As BoundProgram::Next.
  Result<bool> Next(std::optional<Duration> most);
  // Copies memory of a device to the host, after all work that the program has queued. The copies
  // are valid until the next call.
  Result<std::vector<const std::byte*>> ReadDevice(
      std::span<const std::span<const std::byte>> device);
  // kInvalid: the program may not weigh, because the job's batch grows.
  Status ReportSums(ReportedSums sums);
  // Answers a shard. `sums`: those of ReportedSums::device_sums, in the memory of the program's
  // GPU.
  Status ShardDoneOn(double samples, const double* sums);
  // nullptr: the learner has not ended.
  const Ending* ending() const;
  std::optional<ShardTask> Forecast(std::uint64_t ahead) const { return forecast_->After(ahead); }
  std::optional<std::string> NextMetricsLine();

  // Stores the text next to the checkpoints, if there is a job. Any thread; never waits.
  void KeepOutput(std::string_view text) {
    if (output_) output_->Keep(text);
  }
  // The program cannot continue: the learner ends with this error.
  void Fail(const Error& error);
  // Ends the learner, if it has not ended, once the current work is answered or this object is
  // destroyed. May run while another thread is in a call, for example waits in Next.
  void EndProgram();
  void Leave();
  // 0: as many as it can get.
  void AskForLearners(int learners);

 private:
  LearnerSession(Options options, LearnerEnvironment environment);
  void Run();
  void Train(Ending& ending);
  // Where the program's gradients are summed; nullptr: in host memory.
  std::shared_ptr<CudaGradients> GradientsOnDevice() const;
  // False: it had ended or failed before.
  bool FailRuntime(const Error& error);
  // The GPU of the program's tensors. The first memory on a GPU decides which one that is.
  Result<CudaMemory*> DeviceOf(const void* device);

  const std::string name_;
  RunLearnerOptions run_;
  std::unique_ptr<KeptOutput> output_;  // nullptr: the output is not stored
  std::filesystem::path folder_;
  std::optional<ProgramInfo> info_;
  std::optional<Schedule> schedule_;
  std::optional<ShardForecast> forecast_;
  std::vector<BoundTensor> tensors_;
  FinalLayout final_layout_;
  // Set under mutex_ by the program's thread, which reads it without the lock.
  std::unique_ptr<BoundProgram> program_;
  std::shared_ptr<CudaMemory> device_;  // nullptr: no memory of a GPU was used yet
  std::shared_ptr<std::byte> staging_;  // for gradients
  std::size_t staging_bytes_ = 0;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::optional<LearnerControl> control_;  // while the runtime runs
  // These three may be set before the runtime runs; it receives them when it starts.
  std::optional<Error> failure_;
  bool leave_ = false;
  std::optional<int> learners_asked_;
  std::optional<Ending> ending_;
  std::deque<std::string> metrics_lines_;

  std::jthread thread_;  // last: joined before the rest is destroyed
};

}  // namespace pliant
