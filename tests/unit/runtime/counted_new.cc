#include "tests/unit/runtime/counted_new.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> g_allocations = 0;

void* AllocateOrNull(std::size_t bytes, std::size_t alignment) {
  ++g_allocations;
  void* memory = nullptr;
  const std::size_t least = std::max(alignment, sizeof(void*));
  return ::posix_memalign(&memory, least, std::max<std::size_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (void* const memory = AllocateOrNull(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The array forms, and those that do not throw, end in these.
void* operator new(std::size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// What Boost.Asio calls for its operations.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return AllocateOrNull(bytes, alignment);
}

namespace pliant {

std::uint64_t Allocations() { return g_allocations; }

}  // namespace pliant
