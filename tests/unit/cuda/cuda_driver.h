#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pliant {

// A program's own use of the driver, the real one or the stand-in: what a framework does by itself.
class CudaDriver {
 public:
  // nullptr where there is no GPU; `why` says so.
  static const CudaDriver* Find(std::string& why);

  void* Allocate(std::size_t bytes) const;
  void* AllocatePinned(std::size_t bytes) const;
  void Free(void* device) const;
  void FreePinned(void* host) const;
  // Only queued, on a stream of its own: `from` is pinned, and stays as it is until somebody waits.
  void Queue(void* to, const void* from, std::size_t bytes) const;
  // Of what is there when all that was queued is done.
  void Read(void* to, const void* from, std::size_t bytes) const;

  bool is_fake() const { return fail_after_ != nullptr; }
  // The stand-in's copies fail after so many more; negative: none.
  void FailAfter(int copies) const { fail_after_(copies); }

 private:
  using DevicePointer = std::uint64_t;

  // Fails the process: tests go on with a driver that works.
  static void Must(int result, const char* what);

  void* context_ = nullptr;
  void* stream_ = nullptr;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*synchronize_)() = nullptr;
  int (*alloc_)(DevicePointer*, std::size_t) = nullptr;
  int (*free_)(DevicePointer) = nullptr;
  int (*host_alloc_)(void**, std::size_t, unsigned) = nullptr;
  int (*host_free_)(void*) = nullptr;
  int (*to_host_)(void*, DevicePointer, std::size_t) = nullptr;
  int (*to_device_async_)(DevicePointer, const void*, std::size_t, void*) = nullptr;
  void (*fail_after_)(int) = nullptr;

  friend class CurrentContext;
};

}  // namespace pliant
