#include "tests/fakes/cuda/memory_map.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace pliant::fake_cuda {
namespace {

constexpr int kPoison = 0xcb;
constexpr std::size_t kAlignment = 256;              // of cuMemAlloc
constexpr std::size_t kGap = std::size_t{1} << 21U;  // between blocks: an overrun hits nothing

bool IsDevices(Kind kind) { return kind == Kind::kDevice || kind == Kind::kPooled; }

}  // namespace

std::uint64_t MemoryMap::NewAddresses(std::size_t bytes, std::size_t alignment) {
  next_ = (next_ + alignment - 1) / alignment * alignment;
  return std::exchange(next_, next_ + bytes + kGap);
}

std::optional<std::uint64_t> MemoryMap::Allocate(std::size_t bytes, Kind kind, int device) {
  constexpr std::size_t kMaxAllocation = std::size_t{1} << 40U;  // no GPU has more
  if (bytes > kMaxAllocation || (limit_ && allocated_ + bytes > *limit_)) return std::nullopt;
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::malloc(bytes)), std::free);
  if (memory == nullptr) return std::nullopt;
  std::memset(memory.get(), kPoison, bytes);
  allocated_ += bytes;
  const std::uint64_t begin = NewAddresses(bytes, kAlignment);
  blocks_[begin] = {.bytes = bytes, .kind = kind, .device = device, .memory = std::move(memory)};
  return begin;
}

void MemoryMap::Pin(std::byte* memory, std::size_t bytes, std::shared_ptr<std::byte> owned) {
  // Registered memory is its owner's.
  if (owned == nullptr) owned = std::shared_ptr<std::byte>(memory, [](std::byte*) {});
  blocks_[reinterpret_cast<std::uintptr_t>(memory)] = {
      .bytes = bytes, .kind = Kind::kPinned, .memory = std::move(owned)};
}

std::uint64_t MemoryMap::Reserve(std::size_t bytes, int device) {
  const std::uint64_t begin = NewAddresses(bytes, kGap);
  reserved_[begin] = bytes;
  blocks_[begin] = {.bytes = bytes, .kind = Kind::kReserved, .device = device, .accessible = false};
  return begin;
}

bool MemoryMap::Map(std::uint64_t begin, std::size_t bytes, std::shared_ptr<std::byte> memory,
                    int device) {
  auto after = blocks_.upper_bound(begin);
  if (after == blocks_.begin()) return false;
  const auto found = std::prev(after);
  const auto [start, block] = *found;
  if (block.kind != Kind::kReserved || begin + bytes > start + block.bytes) return false;
  blocks_.erase(found);
  const auto leave = [&](std::uint64_t from, std::uint64_t to) {
    if (from < to)
      blocks_[from] = {
          .bytes = to - from, .kind = Kind::kReserved, .device = block.device, .accessible = false};
  };
  leave(start, begin);
  leave(begin + bytes, start + block.bytes);
  blocks_[begin] = {.bytes = bytes,
                    .kind = Kind::kMapped,
                    .device = device,
                    .memory = std::move(memory),
                    .accessible = false};
  return true;
}

bool MemoryMap::Unmap(std::uint64_t begin, std::size_t bytes) {
  const auto found = blocks_.find(begin);
  if (found == blocks_.end() || found->second.kind != Kind::kMapped || found->second.bytes != bytes)
    return false;
  found->second = {
      .bytes = bytes, .kind = Kind::kReserved, .device = found->second.device, .accessible = false};
  return true;
}

bool MemoryMap::SetAccess(std::uint64_t begin, std::size_t bytes) {
  const auto found = blocks_.find(begin);
  if (found == blocks_.end() || found->second.kind != Kind::kMapped || found->second.bytes != bytes)
    return false;
  found->second.accessible = true;
  return true;
}

bool MemoryMap::FreeReserved(std::uint64_t begin, std::size_t bytes) {
  const auto found = reserved_.find(begin);
  if (found == reserved_.end() || found->second != bytes) return false;
  const auto first = blocks_.lower_bound(begin);
  const auto last = blocks_.lower_bound(begin + bytes);
  const bool mapped = std::any_of(
      first, last, [](const auto& block) { return block.second.kind != Kind::kReserved; });
  if (mapped) return false;
  blocks_.erase(first, last);
  reserved_.erase(found);
  return true;
}

std::optional<Block> MemoryMap::Free(std::uint64_t begin, std::set<Kind> kinds) {
  const auto found = blocks_.find(begin);
  if (found == blocks_.end() || !kinds.contains(found->second.kind)) return std::nullopt;
  Block block = std::move(found->second);
  blocks_.erase(found);
  if (IsDevices(block.kind)) allocated_ -= block.bytes;
  return block;
}

std::optional<std::pair<std::uint64_t, Block>> MemoryMap::Find(std::uint64_t address) const {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return std::nullopt;
  --found;
  if (address >= found->first + found->second.bytes) return std::nullopt;
  return *found;
}

std::byte* MemoryMap::OnHost(std::uint64_t address, std::size_t bytes) const {
  const auto found = Find(address);
  if (!found || !found->second.accessible) return nullptr;
  const auto& [begin, block] = *found;
  if (bytes > begin + block.bytes - address) return nullptr;
  return block.memory.get() + (address - begin);
}

}  // namespace pliant::fake_cuda
