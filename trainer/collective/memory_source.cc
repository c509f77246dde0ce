#include "trainer/collective/memory_source.h"

#include <new>

#include <sys/mman.h>

namespace pliant {
namespace {

constexpr std::align_val_t kCacheLine{64};
// Large buffers are passed over from end to end many times a step: with huge pages, without a miss
// of the address translation every 4 KiB.
constexpr std::align_val_t kHugePage{std::size_t{2} << 20};
constexpr std::size_t kHugeLeast = std::size_t{4} << 20;

class Heap final : public MemorySource {
 public:
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    const std::align_val_t alignment = bytes >= kHugeLeast ? kHugePage : kCacheLine;
    auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment));
    if (bytes >= kHugeLeast) ::madvise(memory, bytes, MADV_HUGEPAGE);  // a hint
    return {memory, [alignment](std::byte* unused) { ::operator delete(unused, alignment); }};
  }
};

}  // namespace

MemorySource& HeapMemory() {
  static Heap heap;
  return heap;
}

}  // namespace pliant
