#include "trainer/process/freed_memory.h"

#include <cstdlib>
#include <initializer_list>

#include <malloc.h>

namespace pliant {
namespace {

// The most that the C library takes. Larger blocks are mapped one by one, and given back.
constexpr int kMinMapped = 32 << 20;
constexpr int kNever = -1;

}  // namespace

void KeepFreedMemory() {
  for (const char* name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"}) {
    if (std::getenv(name) != nullptr) return;
  }
#if defined(__GLIBC__)
  // Both: with one of them set the other does not follow the program's use any more.
  ::mallopt(M_MMAP_THRESHOLD, kMinMapped);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
#endif
}

}  // namespace pliant
