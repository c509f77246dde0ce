#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "trainer/binding/model_buffers.h"
#include "trainer/binding/reported_sums.h"
#include "trainer/checkpoint/device_memory.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/cuda/cuda_gradients.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/operation.h"
#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/pulled_thread.h"

namespace pliant {

enum class TensorRole {
  kParameter,  // has a gradient
  kBuffer,     // the forward pass changes it
  kState,      // anything else
  kHome,       // frozen, and only in the final model
};

// A tensor of a program, in the program's own memory.
struct BoundTensor {
  TensorView view;
  TensorRole role = TensorRole::kState;
};

// A program whose owner's thread fetches the work and does it: for frameworks and languages that
// want to own their loop.
//
// Buffers exist twice: the committed ones here, and the program's own. Before each shard the
// program's are set to the committed ones; the shard may change them. A commit begins with those
// that shard 0 left; the values after the commit become the committed ones. The same holds after an
// evaluation.
//
// Tensors may be on a device. Then the owner's thread marks each new state (DeviceMemory::Mark),
// and any thread may read it until the next one. Gradients may be there, too.
class BoundProgram final : public ProgramView {
 public:
  // kInvalid: two tensors have the same name, or there is no parameter to train.
  static Status Check(const std::vector<BoundTensor>& tensors);
  // The number of elements of each parameter.
  static std::vector<std::size_t> GradientSizes(const std::vector<BoundTensor>& tensors);
  // Sets the sizes in `info` from the tensors. `device` holds the tensors that are not in host
  // memory, or is nullptr. `gradients` has the sizes of GradientSizes and sums gradients on the
  // device; nullptr: they are summed on the host.
  static Result<std::unique_ptr<BoundProgram>> Make(ProgramInfo info,
                                                    std::vector<BoundTensor> tensors,
                                                    std::shared_ptr<DeviceMemory> device,
                                                    std::shared_ptr<CudaGradients> gradients);
  // Before the program is used. Its tensors at home are the registered ones.
  void SetFinalLayout(FinalLayout layout);

  // ---- ProgramView ----
  const ProgramInfo& info() const override { return info_; }
  StateDict State() override { return state_; }
  FinalLayout final_layout() const override { return final_layout_; }
  GradientDevice* gradient_device() override { return device_gradients_.get(); }
  Duration data_wait() const override { return data_wait_.load(); }
  ProgramWishes wishes() const override {
    const std::lock_guard lock(wishes_mutex_);
    return wishes_;
  }

  // The runtime gives work to this thread.
  ProgramThread& thread() { return thread_; }

  // ---- The owner's thread ----

  // Waits for work, as PulledThread::Next. A device error here or in an answer ends the program
  // (Refuse).
  Result<bool> Next(std::optional<Duration> max);
  // The work that is not answered yet; nullptr: none.
  const Work* work() const { return thread_.work(); }

  std::size_t parameters() const { return gradients_.size(); }
  // The number of elements of each parameter's gradient.
  std::span<const std::size_t> gradient_sizes() const { return info_.gradient_tensors; }
  const GradientCells& cells() const { return cells_; }
  // All spans of gradients are in its memory; nullptr: they are in host memory.
  CudaGradients* device_gradients() { return device_gradients_.get(); }
  // During a training shard: the memory for one parameter's gradient, and for all of them.
  std::span<float> GradientOf(std::size_t parameter);
  std::span<float> gradient() { return shard().gradient; }
  // Whether the caller may write left + gradient of all parameters in one pass, in place of the
  // gradients: no part of a training shard's gradient is ready yet, and LeftOf is what it is added
  // to. The caller then calls Added.
  bool can_add() const;
  std::span<const float> LeftOf(std::size_t parameter) const;
  std::span<const float> left() const { return shard().left; }
  void Added() { *shard().added = true; }
  // kInvalid: GradientsReady was called for one of them in this shard.
  Status CheckNotReady(std::size_t first, std::size_t count) const;
  // These gradients are final; buckets that are complete may be sent from now on.
  // An error ends the program (Refuse).
  Status GradientsReady(std::size_t first, std::size_t count);

  void DataWaited(Duration time) { data_wait_ = data_wait_.load() + time; }
  // Sums that the answer to the current shard takes.
  ReportedSums& reported() { return reported_; }
  Status ShardDone(const ShardSums& sums);  // answers ShardWork
  // The same with reported().device_sums() sums in the device's memory: loss, correct and named
  // ones. Only with device_gradients().
  Status ShardDone(double samples, std::span<const std::byte> sums);
  Status Committed(bool taken);  // answers CommitTask
  Status Evaluated();            // answers EvaluationTask
  Status Loaded();               // answers LoadedWork
  // Called before one of the last three answers: the training is complete with that answer.
  Status Stop() {
    next_wishes_.end = true;
    return {};
  }
  // Called before an answer to a commit or an evaluation.
  Status SaveCheckpoint() {
    next_wishes_.checkpoint = true;
    return {};
  }
  Status ExportBest(std::string note) {
    next_wishes_.best = std::move(note);
    return {};
  }
  // As PulledThread::Refuse.
  void Refuse(const Error& error) { thread_.Refuse(error); }

  // ---- Any thread ----

  // As PulledThread::Close.
  void Close(const Error& error) { thread_.Close(error); }
  // No more work will come.
  void End() { thread_.End(); }

 private:
  struct Part {
    std::size_t offset = 0;
    std::size_t size = 0;
  };

  BoundProgram(ProgramInfo info, std::vector<BoundTensor> tensors,
               std::shared_ptr<DeviceMemory> device, std::shared_ptr<CudaGradients> gradients);

  const ShardWork& shard() const { return std::get<ShardWork>(*work()); }
  void MakeState();
  Status SaveBuffers();
  // The state is complete with all work that the program has queued on the device.
  Status MarkState();
  // `kept`: whether the work's result was kept; on an error the program is refused instead.
  Status Answer(const Status& kept, const ShardSums& sums);
  Status AnswerChange(const Status& kept);

  ProgramInfo info_;
  const std::vector<BoundTensor> tensors_;
  std::vector<Part> gradients_;  // by parameter, in floats
  GradientCells cells_;
  const std::shared_ptr<DeviceMemory> device_;
  const std::shared_ptr<CudaGradients> device_gradients_;
  GradientArithmetic& arithmetic_;  // where the gradients are
  ModelBuffers buffers_;
  StateDict state_;
  FinalLayout final_layout_;

  PulledThread thread_{*this};  // synchronises itself
  // Written by the owner's thread only.
  std::atomic<Duration> data_wait_{};
  mutable std::mutex wishes_mutex_;
  ProgramWishes wishes_;  // guarded by wishes_mutex_

  // The owner's thread only.
  std::vector<bool> ready_;    // by parameter
  ReportedSums reported_;      // of the current shard
  ProgramWishes next_wishes_;  // of the answer that is being made
};

}  // namespace pliant
