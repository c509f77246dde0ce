#include "trainer/collective/byte_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

namespace pliant {
namespace {

constexpr std::size_t kLeastBytes = 64;
using Block = std::shared_ptr<std::byte>;

}  // namespace

// Unused blocks, by the binary logarithm of their size, which is a power of two of bytes.
struct BytePool::Shelves {
  explicit Shelves(std::size_t most) : max_kept(most) {}

  Block Take(std::size_t shelf) {
    const std::lock_guard lock(mutex);
    if (blocks[shelf].empty()) return nullptr;
    Block block = std::move(blocks[shelf].back());
    blocks[shelf].pop_back();
    kept -= std::size_t{1} << shelf;
    return block;
  }

  void GiveBack(Block block, std::size_t shelf) {
    const std::lock_guard lock(mutex);
    const std::size_t bytes = std::size_t{1} << shelf;
    if (bytes > max_kept - std::min(kept, max_kept)) return;
    blocks[shelf].push_back(std::move(block));
    kept += bytes;
  }

  const std::size_t max_kept;
  std::mutex mutex;
  std::array<std::vector<Block>, 64> blocks;  // guarded by mutex
  std::size_t kept = 0;                       // bytes in blocks; guarded by mutex
};

BytePool::BytePool(std::size_t max_kept_bytes, MemorySource& memory)
    : shelves_(std::make_shared<Shelves>(max_kept_bytes)), memory_(memory) {}

MutableBytes BytePool::Take(std::size_t bytes) {
  const auto shelf = static_cast<std::size_t>(std::bit_width(std::max(bytes, kLeastBytes) - 1));
  Block block = shelves_->Take(shelf);
  if (block == nullptr) block = memory_.Allocate(std::size_t{1} << shelf);
  std::byte* const begin = block.get();
  std::shared_ptr<std::byte> owner(
      begin, [shelves = shelves_, shelf, block = std::move(block)](std::byte*) mutable {
        shelves->GiveBack(std::move(block), shelf);
      });
  return {.owner = std::move(owner), .view = {begin, bytes}};
}

}  // namespace pliant
