#include "trainer/cuda/cuda_memory.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <dlfcn.h>

#include "base/format.h"

namespace pliant {
namespace {

// Types and constants of the driver's interface. It is stable, so the build does not need cuda.h.
using DevicePointer = std::uint64_t;
using Context = void*;
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kAttributeContext = 1;
constexpr int kAttributeMemoryType = 2;
constexpr int kAttributeDevice = 9;
constexpr std::uint32_t kMemoryTypeDevice = 2;
constexpr unsigned kHostAllocPortable = 1;

constexpr std::string_view kRemedy =
    "run the learner on a machine that has an NVIDIA GPU with its driver (in Kubernetes: the pod "
    "requests nvidia.com/gpu, the node has NVIDIA's container toolkit), or pass host memory "
    "(PLIANT_CPU)";

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*get_error_name)(int, const char**) = nullptr;
  int (*pointer_get_attribute)(void*, int, DevicePointer) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*primary_context_retain)(Context*, int) = nullptr;
  int (*context_push)(Context) = nullptr;
  int (*context_pop)(Context*) = nullptr;
  int (*context_synchronize)() = nullptr;
  int (*copy_to_host)(void*, DevicePointer, std::size_t) = nullptr;
  int (*copy_to_device)(DevicePointer, const void*, std::size_t) = nullptr;
  int (*host_alloc)(void**, std::size_t, unsigned) = nullptr;
  int (*host_free)(void*) = nullptr;

  Status Check(int result, std::string_view what) const {
    if (result == kSuccess) return {};
    const char* name = nullptr;
    if (get_error_name(result, &name) != kSuccess || name == nullptr) name = "an unknown error";
    return Fail(ErrorCode::kUnavailable, Format("CUDA: {}: {}", what, name));
  }

  // Makes `context` the thread's current context while `body` runs.
  template <typename Body>
  Status In(Context context, const Body& body) const {
    RETURN_IF_ERROR(Check(context_push(context), "set the current context"));
    const Status status = body();
    Context popped = nullptr;
    context_pop(&popped);
    return status;
  }
};

Result<Driver> Open(const std::string& path) {
  Driver driver;
  // The driver has threads of its own: it is never closed.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const error = ::dlerror();
    return Fail(ErrorCode::kUnavailable, Format("NVIDIA's driver cannot be loaded ({}): {}",
                                                error == nullptr ? path : error, kRemedy));
  }
  const char* missing = nullptr;
  const auto find = [&]<typename Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(handle, name));
    if (function == nullptr) missing = name;
  };
  find(driver.init, "cuInit");
  find(driver.get_error_name, "cuGetErrorName");
  find(driver.pointer_get_attribute, "cuPointerGetAttribute");
  find(driver.device_get, "cuDeviceGet");
  find(driver.primary_context_retain, "cuDevicePrimaryCtxRetain");
  find(driver.context_push, "cuCtxPushCurrent_v2");
  find(driver.context_pop, "cuCtxPopCurrent_v2");
  find(driver.context_synchronize, "cuCtxSynchronize");
  find(driver.copy_to_host, "cuMemcpyDtoH_v2");
  find(driver.copy_to_device, "cuMemcpyHtoD_v2");
  find(driver.host_alloc, "cuMemHostAlloc");
  find(driver.host_free, "cuMemFreeHost");
  if (missing != nullptr) {
    return Fail(ErrorCode::kUnavailable, Format("{} has no {}: {}", path, missing, kRemedy));
  }
  if (const Status status = driver.Check(driver.init(0), "cuInit"); !status) {
    return Fail(ErrorCode::kUnavailable, Format("{}: {}", status.error().message, kRemedy));
  }
  return driver;
}

DevicePointer AddressOf(const void* device) { return reinterpret_cast<std::uintptr_t>(device); }

class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(Driver driver) : driver_(std::make_shared<const Driver>(std::move(driver))) {}

  Result<std::shared_ptr<std::byte>> AllocateStaging(const void* device,
                                                     std::size_t bytes) override {
    ASSIGN_OR_RETURN(const Context context, ContextOf(device));
    void* memory = nullptr;
    RETURN_IF_ERROR(driver_->In(context, [&] {
      return driver_->Check(driver_->host_alloc(&memory, bytes, kHostAllocPortable),
                            Format("{} bytes of pinned host memory", bytes));
    }));
    return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                      [driver = driver_, context](std::byte* unused) {
                                        // At the end of the process the driver may already be gone.
                                        std::ignore = driver->In(context, [&]() -> Status {
                                          driver->host_free(unused);
                                          return {};
                                        });
                                      });
  }

  Status Read(const void* device, std::span<std::byte> to) override {
    ASSIGN_OR_RETURN(const Context context, ContextOf(device));
    return driver_->In(context, [&]() -> Status {
      // Waits for all streams: any of them may write the memory.
      RETURN_IF_ERROR(driver_->Check(driver_->context_synchronize(), "earlier work on the device"));
      return driver_->Check(driver_->copy_to_host(to.data(), AddressOf(device), to.size()),
                            "a copy to the host");
    });
  }

  Status Write(std::span<const std::byte> from, void* device) override {
    ASSIGN_OR_RETURN(const Context context, ContextOf(device));
    return driver_->In(context, [&]() -> Status {
      // Work that still reads the old contents must finish first.
      RETURN_IF_ERROR(driver_->Check(driver_->context_synchronize(), "earlier work on the device"));
      return driver_->Check(driver_->copy_to_device(AddressOf(device), from.data(), from.size()),
                            "a copy to the device");
    });
  }

 private:
  // The context that the memory belongs to. kInvalid: it is not device memory.
  Result<Context> ContextOf(const void* device_memory) {
    const DevicePointer pointer = AddressOf(device_memory);
    std::uint32_t type = 0;
    const int known = driver_->pointer_get_attribute(&type, kAttributeMemoryType, pointer);
    if (known == kInvalidValue || (known == kSuccess && type != kMemoryTypeDevice)) {
      return Invalid(Format("{} is no device memory", device_memory));
    }
    RETURN_IF_ERROR(driver_->Check(known, "the kind of a pointer"));
    Context context = nullptr;
    const int owned = driver_->pointer_get_attribute(&context, kAttributeContext, pointer);
    if (owned != kInvalidValue) {
      RETURN_IF_ERROR(driver_->Check(owned, "the context of a pointer"));
      if (context != nullptr) return context;
    }
    // Memory of a pool, and mapped memory, belongs to a device, not to a context.
    int ordinal = 0;
    int device = 0;
    RETURN_IF_ERROR(
        driver_->Check(driver_->pointer_get_attribute(&ordinal, kAttributeDevice, pointer),
                       "the device of a pointer"));
    if (const auto found = primary_of_.find(ordinal); found != primary_of_.end()) {
      return found->second;
    }
    RETURN_IF_ERROR(driver_->Check(driver_->device_get(&device, ordinal), "cuDeviceGet"));
    RETURN_IF_ERROR(driver_->Check(driver_->primary_context_retain(&context, device),
                                   "cuDevicePrimaryCtxRetain"));
    primary_of_.emplace(ordinal, context);
    return context;
  }

  const std::shared_ptr<const Driver> driver_;
  std::map<int, Context> primary_of_;  // by device; kept while the process lives
};

}  // namespace

Result<std::shared_ptr<DeviceMemory>> OpenCudaMemory(const std::string& path) {
  ASSIGN_OR_RETURN(Driver driver, Open(path));
  return std::make_shared<CudaMemory>(std::move(driver));
}

}  // namespace pliant
