#include "trainer/collective/buffer_pool.h"

#include <new>

namespace pliant {
namespace {

constexpr std::align_val_t kCacheLine{64};

}  // namespace

FloatBuffer::FloatBuffer(std::size_t size)
    : data_(static_cast<float*>(::operator new(size * sizeof(float), kCacheLine)),
            [](float* data) { ::operator delete(data, kCacheLine); }),
      size_(size) {}

BufferPool::BufferPool(std::size_t buffer_size, std::size_t reserve) : buffer_size_(buffer_size) {
  for (std::size_t i = 0; i < reserve; ++i) buffers_.emplace_back(buffer_size_);
}

FloatBuffer BufferPool::Take() {
  // The copy that is returned counts up by an atomic read-modify-write with acquire order
  // (libstdc++), so whatever the last holder did with the buffer on its thread has happened before.
  for (const FloatBuffer& buffer : buffers_)
    if (!buffer.shared()) return buffer;
  return buffers_.emplace_back(buffer_size_);
}

}  // namespace pliant
