#include "trainer/collective/byte_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace pliant {
namespace {

constexpr std::align_val_t kBlockAlignment{64};
constexpr std::size_t kLeastBytes = 64;

}  // namespace

// Blocks of a power of two of bytes, by its logarithm.
struct BytePool::Shelves {
  explicit Shelves(std::size_t most) : kept_most(most) {}
  ~Shelves() {
    for (const auto& shelf : blocks)
      for (std::byte* const block : shelf) ::operator delete(block, kBlockAlignment);
  }

  std::byte* Take(std::size_t shelf) {
    {
      const std::lock_guard lock(mutex);
      if (!blocks[shelf].empty()) {
        std::byte* const block = blocks[shelf].back();
        blocks[shelf].pop_back();
        kept -= std::size_t{1} << shelf;
        return block;
      }
    }
    return static_cast<std::byte*>(::operator new(std::size_t{1} << shelf, kBlockAlignment));
  }

  void GiveBack(std::byte* block, std::size_t shelf) {
    {
      const std::lock_guard lock(mutex);
      const std::size_t bytes = std::size_t{1} << shelf;
      if (bytes <= kept_most - std::min(kept, kept_most)) {
        blocks[shelf].push_back(block);
        kept += bytes;
        return;
      }
    }
    ::operator delete(block, kBlockAlignment);
  }

  const std::size_t kept_most;
  std::mutex mutex;
  std::array<std::vector<std::byte*>, 64> blocks;  // guarded by mutex
  std::size_t kept = 0;                            // bytes in blocks; guarded by mutex
};

BytePool::BytePool(std::size_t kept_bytes_most)
    : shelves_(std::make_shared<Shelves>(kept_bytes_most)) {}

MutableBytes BytePool::Take(std::size_t bytes) {
  const auto shelf = static_cast<std::size_t>(std::bit_width(std::max(bytes, kLeastBytes) - 1));
  std::byte* const block = shelves_->Take(shelf);
  std::shared_ptr<std::byte> owner(
      block, [shelves = shelves_, shelf](std::byte* unused) { shelves->GiveBack(unused, shelf); });
  return {.owner = std::move(owner), .view = {block, bytes}};
}

}  // namespace pliant
