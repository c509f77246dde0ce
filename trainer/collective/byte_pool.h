#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "trainer/collective/memory_source.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

// Memory for received payloads, on cache-line boundaries. Released buffers are kept and recycled,
// so that steps of equal shape take no new pages. Buffers may be released on any thread, and may
// outlive the pool.
class BytePool {
 public:
  // Keeps at most `max_kept_bytes` unused bytes. `memory` outlives the pool.
  explicit BytePool(std::size_t max_kept_bytes, MemorySource& memory = HeapMemory());

  MutableBytes Take(std::size_t bytes);  // contents undefined

 private:
  struct SizeClasses;
  std::shared_ptr<SizeClasses> size_classes_;
  MemorySource& memory_;
};

}  // namespace pliant
