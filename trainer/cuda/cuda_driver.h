#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

// Types of the driver's interface, as in cuda.h. The interface is stable, so the build does not
// need that file.
using CudaPointer = std::uint64_t;  // CUdeviceptr
using CudaContext = void*;
using CudaStream = void*;
using CudaEvent = void*;

enum CudaResult : int {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaNotReady = 600,
};

// Flags.
inline constexpr unsigned kCudaNonBlockingStream = 1;
inline constexpr unsigned kCudaEventWithoutTime = 2;
inline constexpr unsigned kCudaHostPortable = 1;  // of memory: for all contexts

// The functions of NVIDIA's driver that the library uses. The driver is loaded at run time: a
// learner without GPUs does not need it, and no code of the library is linked with it.
struct CudaDriver {
  // kUnavailable: there is no driver, or no GPU; the message says what to do. `path`: a library
  // name for the dynamic linker, or a file.
  static Result<std::shared_ptr<const CudaDriver>> Open(const std::string& path = "libcuda.so.1");

  // The error as a status. `what`: for people, what was tried.
  Status Check(int result, std::string_view what) const;

  int (*init)(unsigned) = nullptr;
  int (*get_error_name)(int, const char**) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_get_attribute)(int*, int, int) = nullptr;
  int (*device_get_uuid)(std::byte*, int) = nullptr;  // 16 bytes
  int (*primary_context_retain)(CudaContext*, int) = nullptr;
  int (*context_push)(CudaContext) = nullptr;
  int (*context_pop)(CudaContext*) = nullptr;
  int (*context_synchronize)() = nullptr;

  int (*pointer_get_attribute)(void*, int, CudaPointer) = nullptr;
  int (*alloc)(CudaPointer*, std::size_t) = nullptr;
  int (*free)(CudaPointer) = nullptr;
  int (*host_alloc)(void**, std::size_t, unsigned) = nullptr;
  int (*host_free)(void*) = nullptr;
  int (*host_register)(void*, std::size_t, unsigned) = nullptr;
  int (*host_unregister)(void*) = nullptr;
  int (*copy_to_host)(void*, CudaPointer, std::size_t, CudaStream) = nullptr;
  int (*copy_to_device)(CudaPointer, const void*, std::size_t, CudaStream) = nullptr;
  int (*copy_within)(CudaPointer, CudaPointer, std::size_t, CudaStream) = nullptr;
  int (*fill)(CudaPointer, unsigned char, std::size_t, CudaStream) = nullptr;

  int (*stream_create)(CudaStream*, unsigned) = nullptr;
  int (*stream_destroy)(CudaStream) = nullptr;
  int (*stream_synchronize)(CudaStream) = nullptr;
  int (*stream_wait_event)(CudaStream, CudaEvent, unsigned) = nullptr;
  int (*event_create)(CudaEvent*, unsigned) = nullptr;
  int (*event_destroy)(CudaEvent) = nullptr;
  int (*event_record)(CudaEvent, CudaStream) = nullptr;
  int (*event_query)(CudaEvent) = nullptr;

  int (*module_load_data)(void**, const void*) = nullptr;
  int (*module_unload)(void*) = nullptr;
  int (*module_get_function)(void**, void*, const char*) = nullptr;
  int (*launch_kernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       CudaStream, void**, void**) = nullptr;
};

// A context that is the thread's current one while this exists.
class CurrentCudaContext {
 public:
  CurrentCudaContext(const CudaDriver& driver, CudaContext context)
      : driver_(driver), error_(driver.context_push(context)) {}
  ~CurrentCudaContext() {
    CudaContext popped = nullptr;
    if (error_ == kCudaSuccess) driver_.context_pop(&popped);
  }
  CurrentCudaContext(const CurrentCudaContext&) = delete;
  CurrentCudaContext& operator=(const CurrentCudaContext&) = delete;
  Status status() const { return driver_.Check(error_, "set the current context"); }

 private:
  const CudaDriver& driver_;
  const int error_;
};

inline CudaPointer CudaAddress(const void* device) {
  return reinterpret_cast<std::uintptr_t>(device);
}

}  // namespace pliant
