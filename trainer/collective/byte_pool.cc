#include "trainer/collective/byte_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

namespace pliant {
namespace {

constexpr std::size_t kMinBytes = 64;
using Block = std::shared_ptr<std::byte>;

}  // namespace

// Unused blocks, by the binary logarithm of their size, which is a power of two of bytes.
struct BytePool::SizeClasses {
  explicit SizeClasses(std::size_t most) : max_kept(most) {}

  Block Take(std::size_t size_class) {
    const std::lock_guard lock(mutex);
    if (blocks[size_class].empty()) return nullptr;
    Block block = std::move(blocks[size_class].back());
    blocks[size_class].pop_back();
    kept -= std::size_t{1} << size_class;
    return block;
  }

  void GiveBack(Block block, std::size_t size_class) {
    const std::lock_guard lock(mutex);
    const std::size_t bytes = std::size_t{1} << size_class;
    if (bytes > max_kept - std::min(kept, max_kept)) return;
    blocks[size_class].push_back(std::move(block));
    kept += bytes;
  }

  const std::size_t max_kept;
  std::mutex mutex;
  std::array<std::vector<Block>, 64> blocks;  // guarded by mutex
  std::size_t kept = 0;                       // bytes in blocks; guarded by mutex
};

BytePool::BytePool(std::size_t max_kept_bytes, MemorySource& memory)
    : size_classes_(std::make_shared<SizeClasses>(max_kept_bytes)), memory_(memory) {}

MutableBytes BytePool::Take(std::size_t bytes) {
  const auto size_class = static_cast<std::size_t>(std::bit_width(std::max(bytes, kMinBytes) - 1));
  Block block = size_classes_->Take(size_class);
  if (block == nullptr) block = memory_.Allocate(std::size_t{1} << size_class);
  std::byte* const begin = block.get();
  std::shared_ptr<std::byte> owner(
      begin, [size_classes = size_classes_, size_class, block = std::move(block)](
                 std::byte*) mutable { size_classes->GiveBack(std::move(block), size_class); });
  return {.owner = std::move(owner), .view = {begin, bytes}};
}

}  // namespace pliant
