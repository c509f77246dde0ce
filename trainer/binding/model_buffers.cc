#include "trainer/binding/model_buffers.h"

#include <algorithm>
#include <utility>

#include "trainer/checkpoint/state_copy.h"
#include "trainer/collective/memory_source.h"

namespace pliant {
namespace {

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

}  // namespace

ModelBuffers::ModelBuffers(StateDict live, std::shared_ptr<CudaGradients> gradients)
    : live_(std::move(live)), device_gradients_(std::move(gradients)) {}

Status ModelBuffers::Allocate() {
  committed_ = live_;
  for (TensorView& buffer : committed_) {
    const std::size_t bytes = buffer.bytes.size();
    if (bytes == 0) continue;
    if (buffer.device == nullptr) {
      memory_.push_back(HeapMemory().Allocate(bytes));
    } else {
      ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, buffer.device->Allocate(bytes));
      memory_.push_back(std::move(memory));
    }
    buffer.bytes = {memory_.back().get(), bytes};
  }
  return CopyAll(live_, committed_);
}

std::size_t ModelBuffers::bytes() const {
  std::size_t bytes = 0;
  for (const TensorView& buffer : live_) bytes += buffer.bytes.size();
  return bytes;
}

Status ModelBuffers::Show(std::span<const std::byte> values) {
  // They are only read.
  auto* const bytes = const_cast<std::byte*>(values.data());
  return Copy(InHostMemory(live_, {bytes, values.size()}), live_);
}

Status ModelBuffers::Save(std::span<std::byte> to) { return Copy(live_, InHostMemory(live_, to)); }

Status ModelBuffers::Copy(const StateDict& from, const StateDict& to) {
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

}  // namespace pliant
