#include "trainer/binding/bound_program.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/exceptions.h"
#include "base/format.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/collective/memory_source.h"

namespace pliant {
namespace {

std::size_t ElementsOf(const TensorView& tensor) {
  return tensor.bytes.size() / SizeOf(tensor.dtype);
}

// Copies tensors into others of the same sizes.
Status CopyAll(const StateDict& from, const StateDict& to) {
  std::vector<TensorCopy> copies;
  for (std::size_t i = 0; i < from.size(); ++i) copies.push_back({.from = &from[i], .to = &to[i]});
  return CopyTensors(copies);
}

// The bytes of tensors that lie one after another in host memory.
StateDict InHostMemory(StateDict tensors, std::span<std::byte> memory) {
  for (TensorView& tensor : tensors) {
    tensor.bytes = memory.first(tensor.bytes.size());
    tensor.device = nullptr;
    memory = memory.subspan(tensor.bytes.size());
  }
  return tensors;
}

StateDict ViewsOf(const std::vector<BoundTensor>& tensors, TensorRole role) {
  StateDict views;
  for (const BoundTensor& tensor : tensors) {
    if (tensor.role == role) views.push_back(tensor.view);
  }
  return views;
}

}  // namespace

Status BoundProgram::Check(const std::vector<BoundTensor>& tensors) {
  std::set<std::string_view> names;
  bool trains = false;
  for (const BoundTensor& tensor : tensors) {
    if (!names.insert(tensor.view.name).second) {
      return Invalid("two tensors are named " + tensor.view.name);
    }
    trains = trains || (tensor.role == TensorRole::kParameter && !tensor.view.bytes.empty());
  }
  if (!trains) return Invalid("no parameter is registered: there is nothing to train");
  return {};
}

std::vector<std::size_t> BoundProgram::GradientSizes(const std::vector<BoundTensor>& tensors) {
  std::vector<std::size_t> sizes;
  for (const BoundTensor& tensor : tensors)
    if (tensor.role == TensorRole::kParameter) sizes.push_back(ElementsOf(tensor.view));
  return sizes;
}

Result<std::unique_ptr<BoundProgram>> BoundProgram::Make(ProgramInfo info,
                                                         std::vector<BoundTensor> tensors,
                                                         std::shared_ptr<DeviceMemory> device,
                                                         std::shared_ptr<CudaGradients> gradients) {
  std::unique_ptr<BoundProgram> program(new BoundProgram(std::move(info), std::move(tensors),
                                                         std::move(device), std::move(gradients)));
  RETURN_IF_ERROR(program->AllocateBuffers());
  return program;
}

BoundProgram::BoundProgram(ProgramInfo info, std::vector<BoundTensor> tensors,
                           std::shared_ptr<DeviceMemory> device,
                           std::shared_ptr<CudaGradients> gradients)
    : info_(std::move(info)),
      tensors_(std::move(tensors)),
      device_(std::move(device)),
      device_gradients_(std::move(gradients)),
      arithmetic_(device_gradients_ ? *device_gradients_ : HostArithmetic()),
      live_buffers_(ViewsOf(tensors_, TensorRole::kBuffer)) {
  for (const std::size_t size : GradientSizes(tensors_)) {
    gradients_.push_back({.offset = info_.gradient_elements, .size = size});
    info_.gradient_elements += size;
    info_.gradient_tensors.push_back(size);
  }
  cells_ = CellsOf(info_);
  for (const TensorView& buffer : live_buffers_) info_.buffer_bytes += buffer.bytes.size();
  ready_.resize(gradients_.size());
}

Status BoundProgram::AllocateBuffers() {
  committed_buffers_ = live_buffers_;
  for (TensorView& buffer : committed_buffers_) {
    const std::size_t bytes = buffer.bytes.size();
    if (bytes == 0) continue;
    if (buffer.device == nullptr) {
      buffer_memory_.push_back(HeapMemory().Allocate(bytes));
    } else {
      ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, buffer.device->Allocate(bytes));
      buffer_memory_.push_back(std::move(memory));
    }
    buffer.bytes = {buffer_memory_.back().get(), bytes};
  }
  RETURN_IF_ERROR(CopyAll(live_buffers_, committed_buffers_));
  auto buffer = committed_buffers_.begin();
  for (const BoundTensor& tensor : tensors_)
    state_.push_back(tensor.role == TensorRole::kBuffer ? *buffer++ : tensor.view);
  return MarkState();
}

// ---- The owner's thread ----

Result<bool> BoundProgram::Next(std::optional<Duration> max) {
  if (!thread_.Next(max)) return false;
  std::ranges::fill(ready_, false);
  if (const Status prepared = Prepare(*work()); !prepared) {
    Refuse(prepared.error());
    return std::unexpected(prepared.error());
  }
  return true;
}

Status BoundProgram::Prepare(const Work& work) {
  const auto* const commit = std::get_if<CommitTask>(&work);
  if (commit != nullptr && !commit->buffers.empty()) return ShowNewBuffers(commit->buffers);
  return RestoreBuffers();
}

// Shows the program the buffers that this commit will commit if the step is taken.
Status BoundProgram::ShowNewBuffers(std::span<const std::byte> from) {
  // They are only read.
  auto* const bytes = const_cast<std::byte*>(from.data());
  const StateDict given = InHostMemory(live_buffers_, {bytes, from.size()});
  return CopyBuffers(given, live_buffers_);
}

std::span<float> BoundProgram::GradientOf(std::size_t parameter) {
  const Part& part = gradients_[parameter];
  return shard().gradient.subspan(part.offset, part.size);
}

bool BoundProgram::can_add() const {
  return !shard().left.empty() && !std::ranges::contains(ready_, true);
}

std::span<const float> BoundProgram::LeftOf(std::size_t parameter) const {
  const Part& part = gradients_[parameter];
  return shard().left.subspan(part.offset, part.size);
}

Status BoundProgram::CheckNotReady(std::size_t first, std::size_t count) const {
  for (std::size_t i = first; i < first + count; ++i) {
    if (ready_[i]) {
      return Invalid(
          Format("the gradient of parameter {} was handed in before: it is final, "
                 "and may have reached other learners",
                 i));
    }
  }
  return {};
}

Status BoundProgram::GradientsReady(std::size_t first, std::size_t count) {
  if (count == 0) return {};
  for (std::size_t i = first; i < first + count; ++i) ready_[i] = true;
  GradientSink* const sink = shard().sink;
  if (sink == nullptr) return {};
  const Part& last = gradients_[first + count - 1];
  const std::size_t begin = gradients_[first].offset;
  // A bucket that was summed up but not sent would never be sent: after an exception the program
  // cannot continue.
  Status handed_out =
      CatchAll([&] { sink->OnReady({.begin = begin, .size = last.offset + last.size - begin}); });
  if (!handed_out) Refuse(handed_out.error());
  return handed_out;
}

Status BoundProgram::ShardDone(const ShardSums& sums) {
  Status saved;
  if (shard().task->kind == TickKind::kTrain) {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (!ready_[i]) arithmetic_.Zero(GradientOf(i));
    }
    saved = SaveBuffers(shard().buffers);
  }
  return Answer(saved, sums);
}

Status BoundProgram::ShardDone(double samples, std::span<const std::byte> sums) {
  device_gradients_->Report(sums, std::as_writable_bytes(shard().sums));
  *shard().sums_follow = true;
  return ShardDone({.samples = samples});
}

Status BoundProgram::Committed(bool taken) {
  return AnswerChange(taken ? CommitBuffers() : RestoreBuffers());
}

Status BoundProgram::Evaluated() { return AnswerChange(CommitBuffers()); }

Status BoundProgram::Loaded() { return AnswerChange({}); }

Status BoundProgram::Answer(const Status& kept, const ShardSums& sums) {
  if (kept) {
    thread_.Answer(sums);
  } else {
    Refuse(kept.error());
  }
  return kept;
}

Status BoundProgram::AnswerChange(const Status& kept) {
  const Status marked = kept ? MarkState() : kept;
  if (marked) wants_end_ = std::exchange(stop_, false);
  return Answer(marked, {});
}

Status BoundProgram::MarkState() { return device_ ? device_->Mark() : Status(); }

Status BoundProgram::CopyBuffers(const StateDict& from, const StateDict& to) {
  if (!device_gradients_) return CopyAll(from, to);
  std::vector<DeviceMemory::Within> within;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::span<std::byte> read = from[i].bytes;
    const std::span<std::byte> written = to[i].bytes;
    if (from[i].device != nullptr && to[i].device != nullptr) {
      within.push_back({.from = read.data(), .to = written.data(), .bytes = read.size()});
    } else if (from[i].device != nullptr) {
      device_gradients_->Report(read, written);
    } else if (to[i].device != nullptr) {
      device_gradients_->ToDevice(read, written);
    } else {
      std::ranges::copy(read, written.begin());
    }
  }
  if (within.empty()) return {};
  return device_gradients_->Copy(within);
}

Status BoundProgram::RestoreBuffers() { return CopyBuffers(committed_buffers_, live_buffers_); }

// The program's buffers become the committed ones.
Status BoundProgram::CommitBuffers() { return CopyBuffers(live_buffers_, committed_buffers_); }

// `to` is empty unless this is shard 0.
Status BoundProgram::SaveBuffers(std::span<std::byte> to) {
  if (to.empty()) return {};
  // The shard's forward has written them. Queued copies come after that by themselves.
  if (!device_gradients_) RETURN_IF_ERROR(MarkState());
  return CopyBuffers(live_buffers_, InHostMemory(live_buffers_, to));
}

}  // namespace pliant
