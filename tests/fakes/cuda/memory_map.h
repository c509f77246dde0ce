#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace pliant::fake_cuda {

enum class Kind { kDevice, kPooled, kMapped, kReserved, kPinned };

// Memory as the device sees it.
struct Block {
  std::size_t bytes = 0;
  Kind kind = Kind::kDevice;
  int device = 0;
  std::shared_ptr<std::byte> memory;  // where the bytes really are; none: reserved addresses
  bool accessible = true;
};

// Device memory has addresses that are invalid on any CPU, and that are never used again. It begins
// as poison. Pinned host memory has its own addresses. For one thread at a time.
class MemoryMap {
 public:
  // nullopt: it would exceed the limit.
  std::optional<std::uint64_t> Allocate(std::size_t bytes, Kind kind, int device);
  // Host memory that devices access at its own address.
  void Pin(std::byte* memory, std::size_t bytes, std::shared_ptr<std::byte> owned);
  std::uint64_t Reserve(std::size_t bytes, int device);
  // Backs a part of reserved addresses. False: they are not all reserved and free.
  bool Map(std::uint64_t begin, std::size_t bytes, std::shared_ptr<std::byte> memory, int device);
  bool Unmap(std::uint64_t begin, std::size_t bytes);
  bool SetAccess(std::uint64_t begin, std::size_t bytes);
  bool FreeReserved(std::uint64_t begin, std::size_t bytes);
  // Frees a block of one of these kinds that begins here.
  std::optional<Block> Free(std::uint64_t begin, std::set<Kind> kinds);

  // The block that holds the address, with its beginning.
  std::optional<std::pair<std::uint64_t, Block>> Find(std::uint64_t address) const;
  // The bytes behind the addresses of a device, or of pinned memory. nullptr: they are not all of
  // one block that may be accessed.
  std::byte* OnHost(std::uint64_t address, std::size_t bytes) const;

  void Limit(std::optional<std::size_t> bytes) { limit_ = bytes; }
  std::size_t allocated() const { return allocated_; }  // on devices

 private:
  std::uint64_t NewAddresses(std::size_t bytes, std::size_t alignment);

  std::map<std::uint64_t, Block> blocks_;          // by begin
  std::map<std::uint64_t, std::size_t> reserved_;  // bytes by begin
  std::uint64_t next_ = std::uint64_t{1} << 62U;   // beyond all canonical addresses
  std::optional<std::size_t> limit_;
  std::size_t allocated_ = 0;
};

}  // namespace pliant::fake_cuda
