#pragma once

#include <cstddef>
#include <memory>

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

}  // namespace pliant
