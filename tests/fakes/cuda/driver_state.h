#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/fakes/cuda/host_kernels.h"
#include "tests/fakes/cuda/memory_map.h"
#include "tests/fakes/cuda/timeline.h"

namespace pliant::fake_cuda {

// CUresult.
enum Error {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kUncorrectableEcc = 214,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kLaunchFailed = 719,
};

// Memory that cuMemCreate made, or imported.
struct Allocation {
  Allocation(int descriptor, std::size_t size, int on) : fd(descriptor), bytes(size), device(on) {}
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  const int fd;
  const std::size_t bytes;
  const int device;
};

// The driver as one process sees it.
struct State {
  State(std::uint64_t seed, int number_of_devices)
      : devices(number_of_devices), timeline(seed, number_of_devices), kernels(HostKernels()) {}

  const int devices;
  Timeline timeline;
  MemoryMap memory;
  std::vector<Kernel> kernels;
  std::map<std::uint64_t, std::shared_ptr<Allocation>> allocations;  // by handle
  std::uint64_t last_allocation = 0;
  bool next_is_pooled = false;
  bool isolated = false;
  std::map<std::string, int> calls;  // of functions that FakeCudaCalls counts
};

// Handles of one kind are never valid as another.
inline constexpr std::uintptr_t kStreams = 0x100000000;
inline constexpr std::uintptr_t kEvents = 0x200000000;
inline constexpr std::uintptr_t kFunctions = 0x300000000;
inline constexpr std::uintptr_t kModules = 0x400000000;
inline constexpr std::uintptr_t kContexts = 0x500000000;
inline constexpr std::uintptr_t kHandles = 0x100000000;  // of a kind

inline void* Handle(std::uintptr_t kind, std::uintptr_t id) {
  return reinterpret_cast<void*>(kind + id);
}
inline std::optional<std::uintptr_t> IdOf(std::uintptr_t kind, const void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value < kind || value >= kind + kHandles) return std::nullopt;
  return value - kind;
}

struct Driver {
  std::mutex mutex;
  std::condition_variable released;  // a hang has ended
  std::unique_ptr<State> state;      // guarded by mutex
};
Driver& TheDriver();

// Calls of this thread that waited.
int& HostWaits();

// The devices whose contexts are current on this thread, the last one first in effect.
std::vector<int>& CurrentDevices();

class Call {
 public:
  Call() : lock_(TheDriver().mutex), state_(*TheDriver().state) {}
  State& state() { return state_; }
  Timeline& timeline() { return state_.timeline; }
  MemoryMap& memory() { return state_.memory; }
  int device() const { return CurrentDevices().back(); }

  // nullptr is the legacy default stream of the current device, as is CU_STREAM_LEGACY.
  std::optional<StreamId> StreamOf(void* handle) const;
  // Blocks the host until the condition holds.
  int WaitUntil(const std::function<bool()>& condition);

 private:
  std::unique_lock<std::mutex> lock_;
  State& state_;
};

// Most calls: they need a context, and fail once something has broken it.
template <typename Body>
int InContext(const Body& body) {
  Call call;
  if (CurrentDevices().empty()) return kInvalidContext;
  call.timeline().MakeProgress();
  if (const int error = call.timeline().error(); error != 0) return error;
  return body(call);
}

}  // namespace pliant::fake_cuda
