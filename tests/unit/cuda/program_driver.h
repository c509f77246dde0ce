#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pliant {

// A program's own use of the driver, real or stand-in, as a framework uses it.
class ProgramDriver {
 public:
  // nullptr if there is no GPU; then `why` is set.
  static const ProgramDriver* Find(std::string& why);

  void* Allocate(std::size_t bytes) const;
  void* AllocatePinned(std::size_t bytes) const;
  void Free(void* device) const;
  void FreePinned(void* host) const;
  // Only queues the copy, on a separate stream: `from` is pinned and must not change until the copy
  // was waited for.
  void Queue(void* to, const void* from, std::size_t bytes) const;
  // Waits for everything queued. The error of the context; 0: it has none.
  int Broken() const;
  // Waits for everything queued, then reads.
  void Read(void* to, const void* from, std::size_t bytes) const;

  // The stream of Queue.
  void* stream() const { return stream_; }

  static constexpr int kLaunchFailed = 719;
  static constexpr int kUncorrectableEcc = 214;

  bool is_fake() const { return fail_after_ != nullptr; }
  // The stand-in begins again, and runs what is queued in the order of this seed. Nobody uses it.
  void Restart(std::uint64_t seed) const;
  // The first violation that the stand-in has found since then: a race between streams, for
  // example. "": none.
  std::string Violation() const;
  // Calls of this thread that made it wait for the stand-in.
  int HostWaits() const { return host_waits_(); }
  // As FakeCudaCalls.
  int Calls(const char* function) const { return calls_(function); }
  // Lets the stand-in's copies fail after `copies` more; negative: none fails.
  void FailAfter(int copies, int error = kLaunchFailed) const { fail_after_(copies, error); }

 private:
  using DevicePointer = std::uint64_t;

  // CHECKs that a call succeeded, because these tests need a working driver.
  static void Must(int result, const char* what);

  void MakeStream() const;

  void* context_ = nullptr;
  mutable void* stream_ = nullptr;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*synchronize_)() = nullptr;
  int (*alloc_)(DevicePointer*, std::size_t) = nullptr;
  int (*free_)(DevicePointer) = nullptr;
  int (*host_alloc_)(void**, std::size_t, unsigned) = nullptr;
  int (*host_free_)(void*) = nullptr;
  int (*to_host_)(void*, DevicePointer, std::size_t) = nullptr;
  int (*to_device_async_)(DevicePointer, const void*, std::size_t, void*) = nullptr;
  int (*stream_create_)(void**, unsigned) = nullptr;
  void (*fail_after_)(int, int) = nullptr;
  void (*reset_)(std::uint64_t, int) = nullptr;
  const char* (*violation_)(int) = nullptr;
  int (*host_waits_)() = nullptr;
  int (*calls_)(const char*) = nullptr;

  friend class CurrentContext;
};

}  // namespace pliant
