#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"

namespace pliant {

// Memory that the CPU cannot dereference, copied to and from host memory. Calls return when the
// copy is made.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Host memory to copy `bytes` at `device` to and from, which the device reaches by itself. Its
  // last owner may let go of it on any thread, also when this object is gone. kInvalid: there is no
  // device memory at `device`.
  virtual Result<std::shared_ptr<std::byte>> AllocateStaging(const void* device,
                                                             std::size_t bytes) = 0;

  // What is there when all that the device was told to do until now is done.
  virtual Status Read(const void* device, std::span<std::byte> to) = 0;
  // What the device is told to do from now on finds it there.
  virtual Status Write(std::span<const std::byte> from, void* device) = 0;
};

}  // namespace pliant
