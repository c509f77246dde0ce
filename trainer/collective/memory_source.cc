#include "trainer/collective/memory_source.h"

#include <cerrno>
#include <cstdint>
#include <new>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace pliant {
namespace {

constexpr std::align_val_t kCacheLine{64};
// Large buffers are read or written from end to end many times a step: huge pages avoid a TLB miss
// every 4 KiB.
constexpr std::align_val_t kHugePage{std::size_t{2} << 20};
constexpr std::size_t kMinHuge = std::size_t{4} << 20;

class Heap final : public MemorySource {
 public:
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    const std::align_val_t alignment = bytes >= kMinHuge ? kHugePage : kCacheLine;
    auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment));
    if (bytes >= kMinHuge) ::madvise(memory, bytes, MADV_HUGEPAGE);  // a hint
    return {memory, [alignment](std::byte* unused) { ::operator delete(unused, alignment); }};
  }
};

// A write makes the kernel allocate the page.
void WriteEachPage(std::span<std::byte> memory, std::size_t page) {
  volatile std::byte* const bytes = memory.data();
  for (std::size_t at = 0; at < memory.size(); at += page) bytes[at] = std::byte{0};
  bytes[memory.size() - 1] = std::byte{0};  // the last page, if `memory` is not page-aligned
}

}  // namespace

MemorySource& HeapMemory() {
  static Heap heap;
  return heap;
}

Status Populate(std::span<std::byte> memory) {
  if (memory.empty()) return {};
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  int result = 0;
  do {
    result = ::madvise(memory.data() - before, before + memory.size(), MADV_POPULATE_WRITE);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  if (errno != EINVAL) return Fail(ErrorCode::kUnavailable, std::generic_category().message(errno));
  WriteEachPage(memory, page);  // before Linux 5.14
  return {};
}

}  // namespace pliant
