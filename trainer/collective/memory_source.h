#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"

namespace pliant {

// The source of the memory of gradients and payloads.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // The memory is on a cache-line boundary, contents undefined. Its last owner may release it on
  // any thread, also when the source no longer exists.
  virtual std::shared_ptr<std::byte> Allocate(std::size_t bytes) = 0;
};

// Private memory of this process.
MemorySource& HeapMemory();

// Makes the kernel allocate all pages of `memory` now, not when they are first written, so that a
// lack of memory shows here. Keeps the contents, except for a few bytes on old kernels, so call it
// before `memory` is used. Takes about 0.3 s per GB.
Status Populate(std::span<std::byte> memory);

}  // namespace pliant
