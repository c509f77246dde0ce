#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/memory_source.h"

namespace pliant {

// Floats on a cache-line boundary. Everything that still reads them keeps them alive: a send queue,
// or a peer in the same process.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  // The contents are undefined.
  explicit FloatBuffer(std::size_t size, MemorySource& memory = HeapMemory());

  std::span<float> view() const { return {data_.get(), size_}; }
  const std::shared_ptr<float[]>& owner() const { return data_; }
  bool shared() const { return data_.use_count() > 1; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::shared_ptr<float[]> data_;
  std::size_t size_ = 0;
};

// Recycles buffers of one size once nobody else holds them. After an aborted tick a send queue may
// still hold a buffer: it stays untouched, and another one takes its place. Holders may release
// buffers on any thread; Take is called on one thread at a time.
class BufferPool {
 public:
  // `memory` outlives it.
  BufferPool(std::size_t buffer_size, std::size_t reserve, MemorySource& memory = HeapMemory());

  // Makes the kernel allocate the pages of the first `buffers` reserved buffers, which Take returns
  // before others. Call it before the first Take.
  Status Populate(std::size_t buffers);

  FloatBuffer Take();
  std::size_t buffer_size() const { return buffer_size_; }
  std::size_t allocated() const { return buffers_.size(); }

 private:
  std::size_t buffer_size_;
  MemorySource* memory_;
  std::vector<FloatBuffer> buffers_;
};

}  // namespace pliant
