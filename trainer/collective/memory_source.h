#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"

namespace pliant {

// Where the buffers of gradients and payloads come from.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // On a cache-line boundary, contents undefined. Its last owner may let go of it on any thread,
  // also when the source is gone.
  virtual std::shared_ptr<std::byte> Allocate(std::size_t bytes) = 0;
};

// Of this process alone.
MemorySource& HeapMemory();

// Has the kernel put pages behind all of `memory` now, not when they are first written: where there
// is no room for them, it shows here. Keeps what stands in it, except for a few bytes on old
// kernels, so call it before there is anything. Takes about 0.3 s a GB.
Status Populate(std::span<std::byte> memory);

}  // namespace pliant
