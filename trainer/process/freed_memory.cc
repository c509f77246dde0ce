#include "trainer/process/freed_memory.h"

#include <cstdlib>
#include <initializer_list>

#include <malloc.h>

namespace pliant {
namespace {

// The maximum that the C library accepts. Larger blocks are mapped one by one, and returned.
constexpr int kMinMapped = 32 << 20;
constexpr int kNever = -1;

}  // namespace

void KeepFreedMemory() {
  for (const char* name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"}) {
    if (std::getenv(name) != nullptr) return;
  }
#if defined(__GLIBC__)
  // Set both: once one is set, the library no longer adapts the other to the program's use.
  ::mallopt(M_MMAP_THRESHOLD, kMinMapped);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
#endif
}

}  // namespace pliant
