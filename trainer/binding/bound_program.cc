#include "trainer/binding/bound_program.h"

#include <algorithm>
#include <cstring>
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

void Copy(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
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

BoundProgram::BoundProgram(ProgramInfo info, std::vector<BoundTensor> tensors)
    : info_(std::move(info)),
      tensors_(std::move(tensors)),
      live_buffers_(ViewsOf(tensors_, TensorRole::kBuffer)),
      committed_buffers_(StateCopy::Of(live_buffers_)) {
  std::size_t buffer = 0;
  for (const BoundTensor& tensor : tensors_) {
    if (tensor.role == TensorRole::kParameter) {
      const std::size_t size = ElementsOf(tensor.view);
      gradients_.push_back({.offset = info_.gradient_elements, .size = size});
      info_.gradient_elements += size;
    }
    if (tensor.role == TensorRole::kBuffer) {
      info_.buffer_bytes += tensor.view.bytes.size();
      state_.push_back(committed_buffers_.view()[buffer++]);
    } else {
      state_.push_back(tensor.view);
    }
  }
  ready_.resize(gradients_.size());
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
  if (std::holds_alternative<LoadedWork>(work)) {
    RETURN_IF_ERROR(CopyToDevice(/*buffers=*/false));
  }
  const auto* const commit = std::get_if<CommitTask>(&work);
  if (commit != nullptr && !commit->buffers.empty()) return ShowNewBuffers(commit->buffers);
  return RestoreBuffers();
}

// Shows the program the buffers that this commit will commit if the step is taken.
Status BoundProgram::ShowNewBuffers(std::span<const std::byte> from) {
  for (const TensorView& buffer : live_buffers_) {
    Copy(from.first(buffer.bytes.size()), buffer.bytes);
    from = from.subspan(buffer.bytes.size());
  }
  return CopyToDevice(/*buffers=*/true);
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
      if (!ready_[i]) std::ranges::fill(GradientOf(i), 0.0F);
    }
    saved = SaveBuffers(shard().buffers);
  }
  return Answer(saved, sums);
}

Status BoundProgram::Committed(bool taken) { return AnswerChange(Adopt(taken)); }

Status BoundProgram::Adopt(bool taken) {
  RETURN_IF_ERROR(CopyFromDevice(/*buffers=*/false));
  return taken ? CommitBuffers() : RestoreBuffers();
}

Status BoundProgram::Evaluated() {
  const Status copied = CopyFromDevice(/*buffers=*/false);
  return AnswerChange(copied ? CommitBuffers() : copied);
}

Status BoundProgram::Loaded() { return AnswerChange({}); }

Status BoundProgram::Answer(const Status& copied, const ShardSums& sums) {
  if (copied) {
    thread_.Answer(sums);
  } else {
    Refuse(copied.error());
  }
  return copied;
}

Status BoundProgram::AnswerChange(const Status& copied) {
  if (copied) wants_end_ = std::exchange(stop_, false);
  return Answer(copied, {});
}

Status BoundProgram::CopyFromDevice(bool buffers) {
  for (const BoundTensor& tensor : tensors_) {
    if (!tensor.staged || (tensor.role == TensorRole::kBuffer) != buffers) continue;
    RETURN_IF_ERROR(tensor.staged->Read());
  }
  return {};
}

Status BoundProgram::CopyToDevice(bool buffers) {
  for (const BoundTensor& tensor : tensors_) {
    if (!tensor.staged || (tensor.role == TensorRole::kBuffer) != buffers) continue;
    RETURN_IF_ERROR(tensor.staged->Write());
  }
  return {};
}

Status BoundProgram::RestoreBuffers() {
  for (std::size_t i = 0; i < live_buffers_.size(); ++i) {
    Copy(committed_buffers_.view()[i].bytes, live_buffers_[i].bytes);
  }
  return CopyToDevice(/*buffers=*/true);
}

// The program's buffers become the committed ones.
Status BoundProgram::CommitBuffers() {
  RETURN_IF_ERROR(CopyFromDevice(/*buffers=*/true));
  for (std::size_t i = 0; i < live_buffers_.size(); ++i) {
    Copy(live_buffers_[i].bytes, committed_buffers_.view()[i].bytes);
  }
  return {};
}

// `to` is empty unless this is shard 0.
Status BoundProgram::SaveBuffers(std::span<std::byte> to) {
  if (to.empty()) return {};
  RETURN_IF_ERROR(CopyFromDevice(/*buffers=*/true));
  for (const TensorView& buffer : live_buffers_) {
    Copy(buffer.bytes, to);
    to = to.subspan(buffer.bytes.size());
  }
  return {};
}

}  // namespace pliant
