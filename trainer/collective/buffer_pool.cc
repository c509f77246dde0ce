#include "trainer/collective/buffer_pool.h"

#include <utility>

#include "base/check.h"

namespace pliant {
namespace {

std::shared_ptr<float[]> AllocateFloats(std::size_t size, MemorySource& memory) {
  std::shared_ptr<std::byte> bytes = memory.Allocate(size * sizeof(float));
  auto* const floats = reinterpret_cast<float*>(bytes.get());
  return {std::move(bytes), floats};
}

}  // namespace

FloatBuffer::FloatBuffer(std::size_t size, MemorySource& memory)
    : data_(AllocateFloats(size, memory)), size_(size) {}

BufferPool::BufferPool(std::size_t buffer_size, std::size_t reserve, MemorySource& memory)
    : buffer_size_(buffer_size), memory_(&memory) {
  for (std::size_t i = 0; i < reserve; ++i) buffers_.emplace_back(buffer_size_, memory);
}

Status BufferPool::Populate(std::size_t buffers) {
  CHECK(buffers <= buffers_.size(), "at least this many buffers are reserved");
  for (std::size_t i = 0; i < buffers; ++i)
    RETURN_IF_ERROR(pliant::Populate(std::as_writable_bytes(buffers_[i].view())));
  return {};
}

FloatBuffer BufferPool::Take() {
  // The copy that is returned increments the count by an atomic read-modify-write with acquire
  // order (libstdc++), so everything that the last holder did with the buffer on its thread has
  // happened before.
  for (const FloatBuffer& buffer : buffers_)
    if (!buffer.shared()) return buffer;
  return buffers_.emplace_back(buffer_size_, *memory_);
}

}  // namespace pliant
