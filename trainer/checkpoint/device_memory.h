#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"

namespace pliant {

// Memory of one device, which the CPU cannot dereference, and the order of copies and of the work
// that the program queues on the device. Pointers to such memory are addresses of the device. All
// lists of copies are of memory that does not overlap.
class DeviceMemory {
 public:
  struct ToHost {
    const std::byte* device = nullptr;
    std::span<std::byte> host;
  };
  struct ToDevice {
    std::span<const std::byte> host;
    std::byte* device = nullptr;
  };
  struct Within {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
  };

  virtual ~DeviceMemory() = default;

  // The last owner may release the memory on any thread, also when this object no longer exists.
  virtual Result<std::shared_ptr<std::byte>> Allocate(std::size_t bytes) = 0;
  // Memory of the host that the device accesses directly: copies to other memory are slower.
  virtual Result<std::shared_ptr<std::byte>> AllocateHost(std::size_t bytes) = 0;

  // ---- The program's thread ----

  // The contents are valid when the work that the program has queued so far is done: later calls of
  // Read wait for it.
  virtual Status Mark() = 0;
  // Work that the program queues later sees the new contents; work that it has queued before sees
  // the old ones. Write returns when it has read all of `host`.
  virtual Status Write(std::span<const ToDevice> copies) = 0;
  virtual Status Copy(std::span<const Within> copies) = 0;

  // ---- Any thread ----

  // Reads the contents as they are at the last Mark. Returns when the copies are complete. The
  // program must not have queued work that changes them since.
  virtual Status Read(std::span<const ToHost> copies) = 0;
};

}  // namespace pliant
