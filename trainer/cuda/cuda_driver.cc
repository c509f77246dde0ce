#include "trainer/cuda/cuda_driver.h"

#include <dlfcn.h>

#include "base/format.h"

namespace pliant {
namespace {

constexpr std::string_view kRemedy =
    "run the learner on a machine that has an NVIDIA GPU with its driver (in Kubernetes: the pod "
    "requests nvidia.com/gpu, the node has NVIDIA's container toolkit), or pass host memory "
    "(PLIANT_CPU)";

}  // namespace

Status CudaDriver::Check(int result, std::string_view what) const {
  if (result == kCudaSuccess) return {};
  const char* name = nullptr;
  if (get_error_name(result, &name) != kCudaSuccess || name == nullptr) name = "an unknown error";
  return Fail(ErrorCode::kUnavailable, Format("CUDA: {}: {}", what, name));
}

Result<std::shared_ptr<const CudaDriver>> CudaDriver::Open(const std::string& path) {
  auto driver = std::make_shared<CudaDriver>();
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
  find(driver->init, "cuInit");
  find(driver->get_error_name, "cuGetErrorName");
  find(driver->device_get, "cuDeviceGet");
  find(driver->device_get_attribute, "cuDeviceGetAttribute");
  find(driver->device_get_uuid, "cuDeviceGetUuid_v2");
  find(driver->primary_context_retain, "cuDevicePrimaryCtxRetain");
  find(driver->context_push, "cuCtxPushCurrent_v2");
  find(driver->context_pop, "cuCtxPopCurrent_v2");
  find(driver->context_synchronize, "cuCtxSynchronize");
  find(driver->pointer_get_attribute, "cuPointerGetAttribute");
  find(driver->alloc, "cuMemAlloc_v2");
  find(driver->free, "cuMemFree_v2");
  find(driver->host_alloc, "cuMemHostAlloc");
  find(driver->host_free, "cuMemFreeHost");
  find(driver->host_register, "cuMemHostRegister_v2");
  find(driver->host_unregister, "cuMemHostUnregister");
  find(driver->copy_to_host, "cuMemcpyDtoHAsync_v2");
  find(driver->copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(driver->copy_within, "cuMemcpyDtoDAsync_v2");
  find(driver->fill, "cuMemsetD8Async");
  find(driver->stream_create, "cuStreamCreate");
  find(driver->stream_destroy, "cuStreamDestroy_v2");
  find(driver->stream_synchronize, "cuStreamSynchronize");
  find(driver->stream_wait_event, "cuStreamWaitEvent");
  find(driver->event_create, "cuEventCreate");
  find(driver->event_destroy, "cuEventDestroy_v2");
  find(driver->event_record, "cuEventRecord");
  find(driver->event_query, "cuEventQuery");
  find(driver->module_load_data, "cuModuleLoadData");
  find(driver->module_unload, "cuModuleUnload");
  find(driver->module_get_function, "cuModuleGetFunction");
  find(driver->launch_kernel, "cuLaunchKernel");
  if (missing != nullptr) {
    return Fail(ErrorCode::kUnavailable, Format("{} has no {}: {}", path, missing, kRemedy));
  }
  if (const Status status = driver->Check(driver->init(0), "cuInit"); !status) {
    return Fail(ErrorCode::kUnavailable, Format("{}: {}", status.error().message, kRemedy));
  }
  return driver;
}

}  // namespace pliant
