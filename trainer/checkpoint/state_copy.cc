#include "trainer/checkpoint/state_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "trainer/checkpoint/device_memory.h"

namespace pliant {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t Padded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool SameTensors(const StateDict& a, const StateDict& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].dtype != b[i].dtype || a[i].shape != b[i].shape ||
        a[i].bytes.size() != b[i].bytes.size())
      return false;
  return true;
}

std::size_t PaddedBytes(const StateDict& state) {
  std::size_t bytes = 0;
  for (const TensorView& tensor : state) bytes += Padded(tensor.bytes.size());
  return bytes;
}

// The copies between the host and one device, or within either.
struct CopiesOfDevice {
  std::vector<DeviceMemory::ToHost> to_host;
  std::vector<DeviceMemory::ToDevice> to_device;
  std::vector<DeviceMemory::Within> within;
};

// Zeroed memory. The system zeroes each page only when it is first written: to zero many gigabytes
// at once would block the caller.
std::shared_ptr<std::byte> Zeroed(std::size_t bytes) {
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::calloc(bytes, 1)), std::free);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

StateCopy StateCopy::In(std::shared_ptr<std::byte> memory, std::size_t bytes,
                        const StateDict& state) {
  StateCopy copy;
  copy.bytes_ = bytes;
  copy.memory_ = std::move(memory);
  copy.view_ = state;
  std::size_t room = bytes + kAlignment;
  void* aligned = copy.memory_.get();
  auto* next = static_cast<std::byte*>(std::align(kAlignment, bytes, aligned, room));
  for (TensorView& tensor : copy.view_) {
    const std::size_t size = tensor.bytes.size();
    tensor.bytes = {next, size};
    tensor.device = nullptr;
    next += Padded(size);
  }
  return copy;
}

StateCopy StateCopy::Like(const StateDict& state) {
  const std::size_t bytes = PaddedBytes(state);
  return In(Zeroed(bytes + kAlignment), bytes, state);
}

StateCopy StateCopy::Of(const StateDict& state) {
  StateCopy copy;
  CHECK(copy.CopyFrom(state).has_value(), "tensors in host memory are copied");
  return copy;
}

Status StateCopy::CopyFrom(const StateDict& state) {
  if (!SameTensors(view_, state)) {
    *this = {};  // before the new memory is allocated
    const auto on_device = std::ranges::find_if(
        state, [](const TensorView& tensor) { return tensor.device != nullptr; });
    const std::size_t bytes = PaddedBytes(state);
    std::shared_ptr<std::byte> memory;
    if (on_device != state.end()) {
      // The system may not allow that much; then copies are slower.
      memory = on_device->device->AllocateHost(bytes + kAlignment).value_or(nullptr);
    }
    if (memory == nullptr) memory = Zeroed(bytes + kAlignment);
    *this = In(std::move(memory), bytes, state);
  }
  std::vector<TensorCopy> copies;
  for (std::size_t i = 0; i < state.size(); ++i)
    copies.push_back({.from = &state[i], .to = &view_[i]});
  return CopyTensors(copies);
}

Status CopyTensors(std::span<const TensorCopy> copies) {
  std::map<DeviceMemory*, CopiesOfDevice> on_devices;
  for (const TensorCopy& copy : copies) {
    const auto& [from, to] = copy;
    if (from->bytes.empty()) continue;
    if (from->device == nullptr && to->device == nullptr) {
      std::memcpy(to->bytes.data(), from->bytes.data(), from->bytes.size());
    } else if (to->device == nullptr) {
      on_devices[from->device].to_host.push_back({.device = from->bytes.data(), .host = to->bytes});
    } else if (from->device == nullptr) {
      on_devices[to->device].to_device.push_back({.host = from->bytes, .device = to->bytes.data()});
    } else {
      CHECK(from->device == to->device, "tensors are not copied between devices");
      on_devices[to->device].within.push_back(
          {.from = from->bytes.data(), .to = to->bytes.data(), .bytes = from->bytes.size()});
    }
  }
  for (auto& [device, of_device] : on_devices) {
    if (!of_device.to_host.empty()) RETURN_IF_ERROR(device->Read(of_device.to_host));
    if (!of_device.to_device.empty()) RETURN_IF_ERROR(device->Write(of_device.to_device));
    if (!of_device.within.empty()) RETURN_IF_ERROR(device->Copy(of_device.within));
  }
  return {};
}

Status CopyState(const StateDict& from, const StateDict& to) {
  std::map<std::string_view, const TensorView*> by_name;
  for (const TensorView& tensor : from) by_name.emplace(tensor.name, &tensor);
  for (const TensorView& tensor : to) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end())
      return Invalid(Format("tensor {} of the model is missing in the state", tensor.name));
    const TensorView& source = *found->second;
    if (source.dtype != tensor.dtype || source.shape != tensor.shape ||
        source.bytes.size() != tensor.bytes.size())
      return Invalid(Format("tensor {} is {} [{}] in the state, and {} [{}] in the model",
                            tensor.name, ToString(source.dtype), ShapeText(source.shape),
                            ToString(tensor.dtype), ShapeText(tensor.shape)));
  }
  if (from.size() != to.size()) {
    for (const TensorView& tensor : to) by_name.erase(tensor.name);
    return Invalid(by_name.empty() ? std::string("the state names a tensor twice")
                                   : Format("tensor {} of the state is not in the model",
                                            by_name.begin()->first));
  }
  std::vector<TensorCopy> copies;
  for (const TensorView& tensor : to)
    copies.push_back({.from = by_name.at(tensor.name), .to = &tensor});
  return CopyTensors(copies);
}

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : ",") + std::to_string(extent);
  return text;
}

}  // namespace pliant
