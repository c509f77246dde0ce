// Devices, contexts, and what tests control.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <unistd.h>

#include "tests/fakes/cuda/cuda_api.h"
#include "tests/fakes/cuda/driver_state.h"

namespace pliant::fake_cuda {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

const char* NameOf(int error) {
  switch (error) {
    case kSuccess:
      return "CUDA_SUCCESS";
    case kInvalidValue:
      return "CUDA_ERROR_INVALID_VALUE";
    case kOutOfMemory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case kInvalidContext:
      return "CUDA_ERROR_INVALID_CONTEXT";
    case kUncorrectableEcc:
      return "CUDA_ERROR_ECC_UNCORRECTABLE";
    case kIllegalAddress:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case kLaunchFailed:
      return "CUDA_ERROR_LAUNCH_FAILED";
    default:
      return "CUDA_ERROR_OTHER";
  }
}

}  // namespace

Driver& TheDriver() {
  // Never destroyed: operations may be queued while the process ends.
  static Driver* const driver = [] {
    auto* const made = new Driver;
    made->state =
        std::make_unique<State>(FromEnvironment("FAKE_CUDA_SEED", 1),
                                static_cast<int>(FromEnvironment("FAKE_CUDA_DEVICES", 1)));
    return made;
  }();
  return *driver;
}

int& HostWaits() {
  thread_local int waits = 0;
  return waits;
}

std::vector<int>& CurrentDevices() {
  thread_local std::vector<int> devices;
  return devices;
}

std::optional<StreamId> Call::StreamOf(void* handle) const {
  constexpr std::uintptr_t kLegacy = 1;
  if (reinterpret_cast<std::uintptr_t>(handle) <= kLegacy) return static_cast<StreamId>(device());
  const auto id = IdOf(kStreams, handle);
  if (!id || !state_.timeline.IsStream(*id)) return std::nullopt;
  return *id;
}

int Call::WaitUntil(const std::function<bool()>& condition) {
  ++HostWaits();
  // Nothing can run: something hangs, or another process has to do its part.
  constexpr std::chrono::milliseconds kLook(1);
  while (!timeline().RunUntil(condition)) TheDriver().released.wait_for(lock_, kLook);
  return timeline().error();
}

}  // namespace pliant::fake_cuda

using namespace pliant::fake_cuda;

extern "C" {

void FakeCudaReset(std::uint64_t seed, int devices) {
  const std::lock_guard lock(TheDriver().mutex);
  TheDriver().state = std::make_unique<State>(seed, devices);
}

int FakeCudaEnqueue(void* stream, const Exchange* exchange) {
  return InContext([&](Call& call) -> int {
    const auto id = call.StreamOf(stream);
    if (!id) return kInvalidHandle;
    call.timeline().EnqueueExchange(*id, exchange->name, exchange->accesses, exchange->over);
    return kSuccess;
  });
}

std::byte* FakeCudaOnHost(std::uint64_t device, std::size_t bytes) {
  return Call().memory().OnHost(device, bytes);
}

int FakeCudaProgress() {
  Call call;
  call.timeline().MakeSomeProgress();
  return call.timeline().error();
}

void FakeCudaReport(const char* violation) { Call().timeline().Violation(violation); }

void FakeCudaAddKernel(const Kernel* kernel) { Call().state().kernels.push_back(*kernel); }

void FakeCudaFailAfter(int operations, int error) {
  Call().timeline().FailAfter(operations < 0 ? std::nullopt : std::optional<int>(operations),
                              error);
}

void FakeCudaHang(void* stream, bool hangs) {
  Call call;
  if (const auto id = call.StreamOf(stream)) call.timeline().Hang(*id, hangs);
  TheDriver().released.notify_all();
}

void FakeCudaLimitMemory(long long bytes) {
  Call().memory().Limit(bytes < 0 ? std::nullopt
                                  : std::optional<std::size_t>(static_cast<std::size_t>(bytes)));
}

void FakeCudaIsolate(bool isolated) { Call().state().isolated = isolated; }
int FakeCudaHostWaits() { return HostWaits(); }
int FakeCudaCalls(const char* function) { return Call().state().calls[function]; }
std::size_t FakeCudaAllocated() { return Call().memory().allocated(); }

const char* FakeCudaViolation(int index) {
  Call call;
  const auto& violations = call.timeline().violations();
  return static_cast<std::size_t>(index) < violations.size()
             ? violations[static_cast<std::size_t>(index)].c_str()
             : nullptr;
}

int cuInit(unsigned flags) { return flags == 0 ? kSuccess : kInvalidValue; }

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

int cuGetErrorName(int error, const char** name) {
  *name = NameOf(error);
  return kSuccess;
}

int cuGetErrorString(int error, const char** text) { return cuGetErrorName(error, text); }

int cuDeviceGetCount(int* count) {
  *count = Call().state().devices;
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= Call().state().devices) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<std::size_t>(size), "Pliant's stand-in for a GPU");
  return kSuccess;
}

int cuDeviceGetUuid_v2(CUuuid* uuid, int device) {
  *uuid = {};
  // Each process has a machine of its own.
  std::snprintf(uuid->bytes, sizeof uuid->bytes, "%d/%d", static_cast<int>(::getpid()), device);
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 16:  // multiprocessors
      *value = 132;
      return kSuccess;
    case 75:  // compute capability, major
      *value = 9;
      return kSuccess;
    case 102:  // virtual memory management
    case 103:  // handles that are POSIX file descriptors
      *value = 1;
      return kSuccess;
    default:
      *value = 0;
      return kSuccess;
  }
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 0 || device >= Call().state().devices) return kInvalidDevice;
  *context = Handle(kContexts, static_cast<std::uintptr_t>(device));
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  return device >= 0 && device < Call().state().devices ? kSuccess : kInvalidDevice;
}

int cuCtxPushCurrent_v2(void* context) {
  const auto device = IdOf(kContexts, context);
  if (!device) return kInvalidContext;
  CurrentDevices().push_back(static_cast<int>(*device));
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  if (CurrentDevices().empty()) return kInvalidContext;
  *context = Handle(kContexts, static_cast<std::uintptr_t>(CurrentDevices().back()));
  CurrentDevices().pop_back();
  return kSuccess;
}

int cuCtxSetCurrent(void* context) {
  if (!CurrentDevices().empty()) CurrentDevices().pop_back();
  return context == nullptr ? kSuccess : cuCtxPushCurrent_v2(context);
}

int cuCtxGetCurrent(void** context) {
  *context = CurrentDevices().empty()
                 ? nullptr
                 : Handle(kContexts, static_cast<std::uintptr_t>(CurrentDevices().back()));
  return kSuccess;
}

int cuCtxGetDevice(int* device) {
  if (CurrentDevices().empty()) return kInvalidContext;
  *device = CurrentDevices().back();
  return kSuccess;
}

int cuCtxSynchronize() {
  return InContext([](Call& call) {
    const int error = call.WaitUntil([&] { return call.timeline().DeviceEnded(call.device()); });
    call.timeline().HostSawDevice(call.device());
    return error;
  });
}

}  // extern "C"
