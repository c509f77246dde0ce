#include "trainer/binding/bound_program.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/exceptions.h"
#include "base/format.h"

namespace pliant {
namespace {

std::size_t ElementsOf(const TensorView& tensor) {
  return tensor.bytes.size() / SizeOf(tensor.dtype);
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
  RETURN_IF_ERROR(program->buffers_.Allocate());
  program->MakeState();
  RETURN_IF_ERROR(program->MarkState());
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
      buffers_(ViewsOf(tensors_, TensorRole::kBuffer), device_gradients_) {
  for (const std::size_t size : GradientSizes(tensors_)) {
    gradients_.push_back({.offset = info_.gradient_elements, .size = size});
    info_.gradient_elements += size;
    info_.gradient_tensors.push_back(size);
  }
  cells_ = CellsOf(info_);
  info_.buffer_bytes = buffers_.bytes();
  ready_.resize(gradients_.size());
}

void BoundProgram::MakeState() {
  auto buffer = buffers_.committed().begin();
  for (const BoundTensor& tensor : tensors_) {
    if (tensor.role == TensorRole::kHome) continue;
    state_.push_back(tensor.role == TensorRole::kBuffer ? *buffer++ : tensor.view);
  }
  SetFinalLayout({});
}

void BoundProgram::SetFinalLayout(FinalLayout layout) {
  final_layout_ = std::move(layout);
  final_layout_.home = ViewsOf(tensors_, TensorRole::kHome);
}

// ---- The owner's thread ----

Result<bool> BoundProgram::Next(std::optional<Duration> max) {
  if (!thread_.Next(max)) return false;
  std::ranges::fill(ready_, false);
  reported_ = {};
  // Before a shard the buffers are the committed ones. A commit begins with those of shard 0.
  const auto* const commit = std::get_if<CommitTask>(work());
  const bool shows = commit != nullptr && !commit->buffers.empty();
  const Status prepared = shows ? buffers_.Show(commit->buffers) : buffers_.Restore();
  if (!prepared) {
    Refuse(prepared.error());
    return std::unexpected(prepared.error());
  }
  return true;
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

Status BoundProgram::ShardDone(double samples, std::span<const std::byte> on_device) {
  const std::size_t count = reported_.device_sums();
  device_gradients_->Report(on_device, std::as_writable_bytes(shard().sums.first(count)));
  *shard().sums_follow = count;
  return ShardDone(reported_.Take(samples));
}

Status BoundProgram::ShardDone(const ShardSums& sums) {
  Status saved;
  if (shard().task->kind == TickKind::kTrain) {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (!ready_[i]) arithmetic_.Zero(GradientOf(i));
    }
    if (!shard().buffers.empty()) saved = SaveBuffers();
  }
  return Answer(saved, sums);
}

// The buffers of shard 0, after the work that makes them.
Status BoundProgram::SaveBuffers() {
  // Queued copies come after that by themselves.
  if (!device_gradients_) RETURN_IF_ERROR(MarkState());
  return buffers_.Save(shard().buffers);
}

Status BoundProgram::Committed(bool taken) {
  return AnswerChange(taken ? buffers_.Commit() : buffers_.Restore());
}

Status BoundProgram::Evaluated() { return AnswerChange(buffers_.Commit()); }

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
  if (marked) {
    const std::lock_guard lock(wishes_mutex_);
    wishes_ = std::exchange(next_wishes_, {});
  }
  return Answer(marked, {});
}

Status BoundProgram::MarkState() { return device_ ? device_->Mark() : Status(); }

}  // namespace pliant
