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
#include "trainer/cuda/device_memory.h"
#include "trainer/data/schedule.h"
#include "trainer/process/learner_environment.h"
#include "trainer/process/run_learner.h"
#include "trainer/process/training_setup.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant {

// A learner whose program owns its loop: what stands behind pliant.h. The runtime runs on a thread
// of its own. Used by one thread, except for Leave, AskForLearners and KeepOutput.
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
  };
  struct Ending {
    LeftReason reason = LeftReason::kFailed;
    bool interrupted = false;
    int exit_code = 1;
    std::uint64_t step = 0;
    std::string message;
    std::string parameters_sha256;
  };

  // kConflict: there is one in this process.
  static Result<std::unique_ptr<LearnerSession>> Open(Options options);
  // Gives up what has not ended.
  ~LearnerSession();
  LearnerSession(const LearnerSession&) = delete;
  LearnerSession& operator=(const LearnerSession&) = delete;

  const LearnerEnvironment& environment() const { return run_.environment; }
  // The folder of the job's checkpoints.
  const std::filesystem::path& folder() const { return folder_; }

  // ---- Before Start. kConflict: not now ----
  Status Describe(const Training& training);
  Status Register(BoundTensor tensor);
  // The same, of memory on a device: the tensor's bytes will be its copy.
  Status RegisterOnDevice(BoundTensor tensor, void* device, std::size_t bytes);
  Status Start();

  int registered(TensorRole role) const;
  // What was described; nullptr before.
  const Schedule* schedule() const { return schedule_ ? &*schedule_ : nullptr; }

  // ---- After Start ----
  // nullptr before.
  BoundProgram* program() { return program_.get(); }
  Result<bool> Next(std::optional<Duration> most);
  // A copy of what is on a device. Valid until the next call.
  Result<std::span<const std::byte>> ReadDevice(const void* device, std::size_t bytes);
  // Once nothing more comes.
  const Ending* ending() const;
  std::optional<ShardTask> Forecast(std::uint64_t ahead) const { return forecast_->After(ahead); }
  std::optional<std::string> NextMetricsLine();

  // Goes beside the checkpoints, where there is a job. Any thread; never waits.
  void KeepOutput(std::string_view text) {
    if (output_) output_->Keep(text);
  }
  // The program cannot go on.
  void Fail(const Error& error);
  // What has not ended does, once the work at hand is answered or this object is destroyed. Beside
  // calls of other threads, such as one that waits in Next.
  void GiveUp();
  void Leave();
  // 0: as many as there are.
  void AskForLearners(int learners);

 private:
  LearnerSession(Options options, LearnerEnvironment environment);
  void Run();
  void Train(Ending& ending);
  // False: it has ended, or failed, before.
  bool FailRuntime(const Error& error);
  Result<std::shared_ptr<DeviceMemory>> Devices();

  const std::string name_;
  RunLearnerOptions run_;
  std::unique_ptr<KeptOutput> output_;  // nullptr: nobody keeps it
  std::filesystem::path folder_;
  std::optional<ProgramInfo> info_;
  std::optional<Schedule> schedule_;
  std::optional<ShardForecast> forecast_;
  std::vector<BoundTensor> tensors_;
  std::unique_ptr<BoundProgram> program_;  // set under mutex_, by the one thread that reads it else
  std::shared_ptr<DeviceMemory> devices_;  // nullptr: not needed until now
  std::shared_ptr<std::byte> staging_;     // of gradients
  std::size_t staging_bytes_ = 0;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::optional<LearnerControl> control_;  // while it runs
  std::optional<Error> failure_;           // given before it ran
  bool leave_ = false;                     // asked before it ran
  std::optional<int> learners_asked_;
  std::optional<Ending> ending_;
  std::deque<std::string> metrics_lines_;

  std::jthread thread_;  // last: joined before the rest is destroyed
};

}  // namespace pliant
