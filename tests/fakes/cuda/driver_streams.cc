// Streams, events and kernels.

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/cuda_api.h"
#include "tests/fakes/cuda/driver_state.h"

using namespace pliant::fake_cuda;

namespace {

constexpr std::uint32_t kElf = 0x464c457f;  // how machine code begins

// Copies of a launch's parameters: the caller's end with the call.
class Parameters {
 public:
  Parameters(const std::vector<std::size_t>& sizes, void** parameters) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto* const value = static_cast<const std::byte*>(parameters[i]);
      values_.emplace_back(value, value + sizes[i]);
    }
    for (auto& value : values_) pointers_.push_back(value.data());
  }
  void* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::vector<std::byte>> values_;
  std::vector<void*> pointers_;
};

// Calls `body` with the event of a handle.
template <typename Body>
int WithEvent(void* event, const Body& body) {
  return InContext([&](Call& call) -> int {
    const auto id = IdOf(kEvents, event);
    if (!id || !call.timeline().IsEvent(*id)) return kInvalidHandle;
    return body(call, *id);
  });
}

template <typename Body>
int WithStream(void* stream, const Body& body) {
  return InContext([&](Call& call) -> int {
    const auto id = call.StreamOf(stream);
    return id ? body(call, *id) : kInvalidHandle;
  });
}

}  // namespace

extern "C" {

int cuStreamCreate(void** stream, unsigned flags) {
  return InContext([&](Call& call) -> int {
    *stream = Handle(kStreams, call.timeline().NewStream(call.device(), flags == 0));
    return kSuccess;
  });
}

int cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

int cuStreamDestroy_v2(void* stream) {
  return WithStream(stream, [](Call& call, StreamId id) -> int {
    return call.timeline().EndStream(id) ? kSuccess : kInvalidHandle;
  });
}

int cuStreamSynchronize(void* stream) {
  return WithStream(stream, [](Call& call, StreamId id) {
    const int error = call.WaitUntil([&] { return call.timeline().StreamEnded(id); });
    call.timeline().HostSawStream(id);
    return error;
  });
}

int cuStreamQuery(void* stream) {
  return WithStream(stream, [](Call& call, StreamId id) -> int {
    call.timeline().MakeSomeProgress();
    if (const int error = call.timeline().error(); error != 0) return error;
    if (!call.timeline().StreamEnded(id)) return kNotReady;
    call.timeline().HostSawStream(id);
    return kSuccess;
  });
}

int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return WithEvent(event, [&](Call& call, EventId id) -> int {
    ++call.state().calls["cuStreamWaitEvent"];
    const auto waiting = call.StreamOf(stream);
    if (!waiting) return kInvalidHandle;
    call.timeline().Wait(*waiting, id);
    return kSuccess;
  });
}

int cuEventCreate(void** event, unsigned) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuEventCreate"];
    *event = Handle(kEvents, call.timeline().NewEvent());
    return kSuccess;
  });
}

int cuEventDestroy_v2(void* event) {
  return WithEvent(event, [](Call& call, EventId id) -> int {
    call.timeline().EndEvent(id);
    return kSuccess;
  });
}

int cuEventRecord(void* event, void* stream) {
  return WithEvent(event, [&](Call& call, EventId id) -> int {
    ++call.state().calls["cuEventRecord"];
    const auto recording = call.StreamOf(stream);
    if (!recording) return kInvalidHandle;
    call.timeline().Record(id, *recording);
    return kSuccess;
  });
}

int cuEventQuery(void* event) {
  return WithEvent(event, [](Call& call, EventId id) -> int {
    call.timeline().MakeSomeProgress();
    if (const int error = call.timeline().error(); error != 0) return error;
    if (!call.timeline().EventEnded(id)) return kNotReady;
    call.timeline().HostSawEvent(id);
    return kSuccess;
  });
}

int cuEventSynchronize(void* event) {
  return WithEvent(event, [](Call& call, EventId id) {
    const int error = call.WaitUntil([&] { return call.timeline().EventEnded(id); });
    call.timeline().HostSawEvent(id);
    return error;
  });
}

int cuModuleLoadData(void** module, const void* image) {
  return InContext([&](Call&) -> int {
    std::uint32_t magic = 0;
    std::memcpy(&magic, image, sizeof magic);
    if (magic != kElf) return kInvalidImage;
    *module = Handle(kModules, 0);
    return kSuccess;
  });
}

int cuModuleUnload(void* module) { return IdOf(kModules, module) ? kSuccess : kInvalidHandle; }

int cuModuleGetFunction(void** function, void* module, const char* name) {
  return InContext([&](Call& call) -> int {
    if (!IdOf(kModules, module)) return kInvalidHandle;
    const auto& kernels = call.state().kernels;
    const auto found = std::ranges::find_if(
        kernels, [&](const Kernel& kernel) { return std::strcmp(kernel.name, name) == 0; });
    if (found == kernels.end()) return kNotFound;
    *function = Handle(kFunctions, static_cast<std::uintptr_t>(found - kernels.begin()));
    return kSuccess;
  });
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned, void* stream,
                   void** parameters, void**) {
  return WithStream(stream, [&](Call& call, StreamId id) -> int {
    ++call.state().calls["cuLaunchKernel"];
    State& state = call.state();
    const auto index = IdOf(kFunctions, function);
    if (!index || *index >= state.kernels.size()) return kInvalidHandle;
    // Larger shapes have no user.
    if (grid_x == 0 || block_x == 0 || block_x > 1024 || grid_y * grid_z * block_y * block_z != 1)
      return kInvalidValue;
    const Kernel& kernel = state.kernels[*index];
    auto copied = std::make_shared<const Parameters>(kernel.parameter_sizes, parameters);
    const auto accesses = kernel.touches(copied->get(), grid_x, block_x);
    state.timeline.Enqueue(
        id, kernel.name, accesses, [&state, kernel, copied, accesses, grid_x, block_x]() -> int {
          for (const Access& access : accesses)
            if (state.memory.OnHost(access.begin, access.bytes) == nullptr) return kIllegalAddress;
          kernel.run(copied->get(), grid_x, block_x, [&](std::uint64_t device) -> std::byte* {
            return state.memory.OnHost(device, 1);
          });
          return kSuccess;
        });
    return kSuccess;
  });
}

}  // extern "C"
