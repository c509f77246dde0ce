#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "trainer/collective/memory_source.h"

namespace pliant {

// Memory that other processes can map when they receive its descriptor. No process can shrink it,
// so that reading mapped memory never fails.
class SharedBlock {
 public:
  static Result<std::shared_ptr<const SharedBlock>> Make(std::uint64_t id, std::size_t bytes);
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::uint64_t id() const { return id_; }  // unique within its process
  int descriptor() const { return descriptor_; }
  std::span<std::byte> view() const { return view_; }

 private:
  SharedBlock(std::uint64_t id, int descriptor, std::span<std::byte> view)
      : id_(id), descriptor_(descriptor), view_(view) {}

  const std::uint64_t id_;
  const int descriptor_;
  const std::span<std::byte> view_;
};

// A block of another process, mapped for reading. That process may change the contents at any time.
class MappedBlock {
 public:
  // Maps `bytes` bytes of a descriptor that a peer sent; the caller may close it afterwards.
  // Refuses memory that can shrink or is shorter.
  static Result<std::shared_ptr<const MappedBlock>> Map(int descriptor, std::uint64_t bytes);
  ~MappedBlock();
  MappedBlock(const MappedBlock&) = delete;
  MappedBlock& operator=(const MappedBlock&) = delete;

  std::span<const std::byte> view() const { return view_; }

 private:
  explicit MappedBlock(std::span<const std::byte> view) : view_(view) {}
  const std::span<const std::byte> view_;
};

// Allocates shared memory, a block for each call, and finds the block of a payload: so a transport
// knows what a peer can read in place. Any thread.
class SharedMemory final : public MemorySource {
 public:
  using MakeBlock = std::function<Result<std::shared_ptr<const SharedBlock>>(std::uint64_t id,
                                                                             std::size_t bytes)>;
  SharedMemory();
  explicit SharedMemory(MakeBlock make);  // `make` is called on any thread
  // Uses heap memory if the kernel gives no shared memory.
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override;
  // Whether the kernel gives shared memory; if not, the error says why.
  Status Probe();
  // Why the kernel refused the last request; empty: it did not.
  std::string refusal() const;

  struct Place {
    std::shared_ptr<const SharedBlock> block;
    std::size_t offset = 0;
  };
  std::optional<Place> Find(std::span<const std::byte> bytes) const;

 private:
  struct Blocks {
    std::mutex mutex;
    std::uint64_t last_id = 0;
    std::string refusal;
    std::map<const std::byte*, std::weak_ptr<const SharedBlock>> by_begin;
  };
  Result<std::shared_ptr<const SharedBlock>> Make(std::size_t bytes);

  const MakeBlock make_;
  const std::shared_ptr<Blocks> blocks_;
};

}  // namespace pliant
