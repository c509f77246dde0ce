#include "tests/kube/live_bytes.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace {

std::atomic<std::ptrdiff_t> g_live_bytes = 0;

void Free(void* memory) {
  g_live_bytes -= static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

// The array forms and the forms that do not throw call these two; nothing here is over-aligned.
void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  g_live_bytes += static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  return memory;
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }

namespace pliant {

std::ptrdiff_t LiveBytes() { return g_live_bytes; }

}  // namespace pliant
