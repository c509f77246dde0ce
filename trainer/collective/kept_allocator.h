#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/check.h"

namespace pliant {

// Blocks of one small size, used again. Any thread.
class KeptBlocks {
 public:
  static constexpr std::size_t kBytes = 128;

  KeptBlocks() = default;
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;
  ~KeptBlocks() {
    for (void* const block : blocks_) ::operator delete(block);
  }

  void* Take() {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return ::operator new(kBytes);
    void* const block = blocks_.back();
    blocks_.pop_back();
    return block;
  }
  void GiveBack(void* block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> blocks_;  // guarded by mutex_
};

// For the control blocks of shared pointers that are made and let go of all the time: as many as
// there ever were at once are kept. Copies share them, and the last one, which may be that of a
// shared pointer, frees them.
template <typename T>
class KeptAllocator {
 public:
  using value_type = T;
  KeptAllocator() : blocks_(std::make_shared<KeptBlocks>()) {}
  template <typename U>
  KeptAllocator(const KeptAllocator<U>& other) : blocks_(other.blocks()) {}

  T* allocate(std::size_t count) {
    CHECK(count * sizeof(T) <= KeptBlocks::kBytes, "a control block is small");
    return static_cast<T*>(blocks_->Take());
  }
  void deallocate(T* memory, std::size_t) { blocks_->GiveBack(memory); }
  const std::shared_ptr<KeptBlocks>& blocks() const { return blocks_; }
  bool operator==(const KeptAllocator&) const = default;

 private:
  std::shared_ptr<KeptBlocks> blocks_;
};

}  // namespace pliant
