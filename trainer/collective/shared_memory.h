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

// Memory that other processes can map when they are handed its descriptor. Nobody can shrink it, so
// that reading what was mapped never fails.
class SharedBlock {
 public:
  static Result<std::shared_ptr<const SharedBlock>> Make(std::uint64_t id, std::size_t bytes);
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::uint64_t id() const { return id_; }  // within its process
  int descriptor() const { return descriptor_; }
  std::span<std::byte> view() const { return view_; }

 private:
  SharedBlock(std::uint64_t id, int descriptor, std::span<std::byte> view)
      : id_(id), descriptor_(descriptor), view_(view) {}

  const std::uint64_t id_;
  const int descriptor_;
  const std::span<std::byte> view_;
};

// A block of another process, to be read. What stands in it is that process's to change at any
// time.
class MappedBlock {
 public:
  // Of `bytes`, from a descriptor that a peer sent; it is not needed any more afterwards. Refuses
  // what can shrink, or is shorter.
  static Result<std::shared_ptr<const MappedBlock>> Map(int descriptor, std::uint64_t bytes);
  ~MappedBlock();
  MappedBlock(const MappedBlock&) = delete;
  MappedBlock& operator=(const MappedBlock&) = delete;

  std::span<const std::byte> view() const { return view_; }

 private:
  explicit MappedBlock(std::span<const std::byte> view) : view_(view) {}
  const std::span<const std::byte> view_;
};

// Gives out shared memory, a block for each call, and knows it again: so a transport can tell what
// a peer may read where it lies. Any thread.
class SharedMemory final : public MemorySource {
 public:
  using MakeBlock = std::function<Result<std::shared_ptr<const SharedBlock>>(std::uint64_t id,
                                                                             std::size_t bytes)>;
  SharedMemory();
  explicit SharedMemory(MakeBlock make);  // which is called on any thread
  // Where the kernel gives none, memory of the heap.
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override;
  // Whether the kernel gives any; if not, why.
  Status Probe();
  // Why it gave none when it was asked last; empty: it gave some.
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
