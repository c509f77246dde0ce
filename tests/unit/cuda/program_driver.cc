#include "tests/unit/cuda/program_driver.h"

#include <memory>
#include <string>

#include <dlfcn.h>

#include "base/check.h"

namespace pliant {

// Makes the context current on this thread for a while. Like a framework, the tests leave none
// behind.
class CurrentContext {
 public:
  explicit CurrentContext(const ProgramDriver& driver) : driver_(driver) {
    ProgramDriver::Must(driver_.push_(driver_.context_), "push");
  }
  ~CurrentContext() {
    void* popped = nullptr;
    driver_.pop_(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const ProgramDriver& driver_;
};

void ProgramDriver::Must(int result, const char* what) {
  CHECK(result == 0, std::string("CUDA: ") + what + ": " + std::to_string(result));
}

const ProgramDriver* ProgramDriver::Find(std::string& why) {
  static std::unique_ptr<ProgramDriver> found;
  if (found) return found.get();
  void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    why = "no driver: " + std::string(::dlerror());
    return nullptr;
  }
  const auto find = [&]<typename Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(handle, name));
    return function != nullptr;
  };
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  auto driver = std::make_unique<ProgramDriver>();
  const bool whole =
      find(init, "cuInit") && find(device_get, "cuDeviceGet") &&
      find(retain, "cuDevicePrimaryCtxRetain") && find(driver->stream_create_, "cuStreamCreate") &&
      find(driver->push_, "cuCtxPushCurrent_v2") && find(driver->pop_, "cuCtxPopCurrent_v2") &&
      find(driver->synchronize_, "cuCtxSynchronize") && find(driver->alloc_, "cuMemAlloc_v2") &&
      find(driver->free_, "cuMemFree_v2") && find(driver->host_alloc_, "cuMemHostAlloc") &&
      find(driver->host_free_, "cuMemFreeHost") && find(driver->to_host_, "cuMemcpyDtoH_v2") &&
      find(driver->to_device_async_, "cuMemcpyHtoDAsync_v2");
  CHECK(whole, "the driver has what every driver has");
  if (find(driver->fail_after_, "FakeCudaFailAfter")) {
    find(driver->reset_, "FakeCudaReset");
    find(driver->violation_, "FakeCudaViolation");
    find(driver->host_waits_, "FakeCudaHostWaits");
    find(driver->calls_, "FakeCudaCalls");
  }
  int device = 0;
  if (init(0) != 0 || device_get(&device, 0) != 0) {
    why = "no GPU";
    return nullptr;
  }
  Must(retain(&driver->context_, device), "retain");
  driver->MakeStream();
  found = std::move(driver);
  return found.get();
}

void ProgramDriver::MakeStream() const {
  const CurrentContext current(*this);
  constexpr unsigned kNonBlocking = 1;
  Must(stream_create_(&stream_, kNonBlocking), "stream");
}

void ProgramDriver::Restart(std::uint64_t seed) const {
  reset_(seed, 1);
  MakeStream();
}

std::string ProgramDriver::Violation() const {
  const char* const first = violation_(0);
  return first == nullptr ? "" : first;
}

void* ProgramDriver::Allocate(std::size_t bytes) const {
  const CurrentContext current(*this);
  DevicePointer at = 0;
  Must(alloc_(&at, bytes), "alloc");
  return reinterpret_cast<void*>(at);
}

void* ProgramDriver::AllocatePinned(std::size_t bytes) const {
  const CurrentContext current(*this);
  void* memory = nullptr;
  Must(host_alloc_(&memory, bytes, 0), "host alloc");
  return memory;
}

void ProgramDriver::Free(void* device) const {
  const CurrentContext current(*this);
  Must(free_(reinterpret_cast<DevicePointer>(device)), "free");
}

void ProgramDriver::FreePinned(void* host) const {
  const CurrentContext current(*this);
  Must(host_free_(host), "host free");
}

void ProgramDriver::Queue(void* to, const void* from, std::size_t bytes) const {
  const CurrentContext current(*this);
  Must(to_device_async_(reinterpret_cast<DevicePointer>(to), from, bytes, stream_), "queue");
}

int ProgramDriver::Broken() const {
  const CurrentContext current(*this);
  return synchronize_();
}

void ProgramDriver::Read(void* to, const void* from, std::size_t bytes) const {
  const CurrentContext current(*this);
  Must(synchronize_(), "synchronize");
  Must(to_host_(to, reinterpret_cast<DevicePointer>(from), bytes), "read");
}

}  // namespace pliant
