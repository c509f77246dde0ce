#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"

namespace pliant {

// Memory that the CPU cannot dereference, copied to and from host memory. Calls return when the
// copy is complete.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Allocates host memory for copies of `bytes` bytes at `device`, which the device can access
  // directly. Its last owner may release it on any thread, also when this object no longer exists.
  // kInvalid: there is no device memory at `device`.
  virtual Result<std::shared_ptr<std::byte>> AllocateStaging(const void* device,
                                                             std::size_t bytes) = 0;

  // Reads the contents as they are after all work submitted to the device so far.
  virtual Status Read(const void* device, std::span<std::byte> to) = 0;
  // Work submitted to the device after this call sees the new contents.
  virtual Status Write(std::span<const std::byte> from, void* device) = 0;
};

}  // namespace pliant
