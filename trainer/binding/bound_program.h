#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/cuda/staged_memory.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/operation.h"
#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/pulled_thread.h"

namespace pliant {

enum class TensorRole {
  kParameter,  // has a gradient
  kBuffer,     // the forward pass changes it
  kState,      // anything else
};

// A tensor of a program: its bytes are the program's own memory or, where that is on a device, the
// copy of it.
struct BoundTensor {
  TensorView view;
  TensorRole role = TensorRole::kState;
  std::shared_ptr<StagedMemory> staged = nullptr;  // none: host memory
};

// A program whose work is done by a thread of its owner's, which fetches it: for frameworks and
// languages that want to own their loop.
//
// Buffers are held twice: what is committed here, and the program's own. A shard finds them as
// committed and may change them. A commit finds those that shard 0 left; with what it makes of them
// they are committed. So it is with an evaluation that is over.
//
// What is on a device is copied by the owner's thread alone: from there when it answers, to there
// before it is given work. In between the copies in host memory hold what is committed.
class BoundProgram final : public ProgramView {
 public:
  // kInvalid: two tensors have one name, or none is a parameter.
  static Status Check(const std::vector<BoundTensor>& tensors);
  // `info` needs no sizes: they follow from the tensors.
  BoundProgram(ProgramInfo info, std::vector<BoundTensor> tensors);

  // ---- ProgramView ----
  const ProgramInfo& info() const override { return info_; }
  StateDict State() override { return state_; }
  Duration data_wait() const override { return data_wait_.load(); }
  bool wants_end() const override { return wants_end_.load(); }

  // Where its work comes from.
  ProgramThread& thread() { return thread_; }

  // ---- The owner's thread ----

  // Waits for work, as PulledThread::Next. An error of a device here, and in an answer, is the end
  // of the program: it is refused.
  Result<bool> Next(std::optional<Duration> max);
  // What is to be answered; nullptr: nothing.
  const Work* work() const { return thread_.work(); }

  // Of a training shard: where a parameter's gradient goes.
  std::size_t parameters() const { return gradients_.size(); }
  std::span<float> GradientOf(std::size_t parameter);
  // Of a training shard: whether all gradients are added to others next, and none is ready yet.
  // Whoever writes the sums in the gradients' places, of all parameters, calls Added.
  bool can_add() const;
  std::span<const float> LeftOf(std::size_t parameter) const;
  void Added() { *shard().added = true; }
  // kInvalid: one of these was said to be ready in this shard.
  Status CheckNotReady(std::size_t first, std::size_t count) const;
  // They are written, and will not change any more: what can travel does from here on.
  // An error ends the program: it is refused.
  Status GradientsReady(std::size_t first, std::size_t count);

  void DataWaited(Duration time) { data_wait_ = data_wait_.load() + time; }
  Status ShardDone(const ShardSums& sums);  // answers ShardWork
  Status Committed(bool taken);             // answers CommitTask
  Status Evaluated();                       // answers EvaluationTask
  Status Loaded();                          // answers LoadedWork
  // Before one of these three: the training is complete with it.
  void Stop() { stop_ = true; }
  // As PulledThread::Refuse.
  void Refuse(const Error& error) { thread_.Refuse(error); }

  // ---- Any thread ----

  // As PulledThread::Close.
  void Close(const Error& error) { thread_.Close(error); }
  // Nothing more comes.
  void End() { thread_.End(); }

 private:
  struct Part {
    std::size_t offset = 0;
    std::size_t size = 0;
  };

  const ShardWork& shard() const { return std::get<ShardWork>(*work()); }
  Status Prepare(const Work& work);
  Status RestoreBuffers();
  Status ShowNewBuffers(std::span<const std::byte> from);
  Status CommitBuffers();
  Status SaveBuffers(std::span<std::byte> to);
  Status Adopt(bool taken);
  // Of the tensors that are on a device: of the buffers, or of all others.
  Status CopyFromDevice(bool buffers);
  Status CopyToDevice(bool buffers);
  // `copied`: what the answer leaves has reached host memory; else it is no answer.
  Status Answer(const Status& copied, const ShardSums& sums);
  Status AnswerChange(const Status& copied);

  ProgramInfo info_;
  const std::vector<BoundTensor> tensors_;
  std::vector<Part> gradients_;  // by parameter, in floats
  StateDict live_buffers_;
  StateCopy committed_buffers_;
  StateDict state_;

  PulledThread thread_{*this};  // synchronises itself
  // Written by the owner's thread only.
  std::atomic<Duration> data_wait_{};
  std::atomic<bool> wants_end_ = false;

  // The owner's thread only.
  std::vector<bool> ready_;  // by parameter
  bool stop_ = false;
};

}  // namespace pliant
