#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace pliant {

// A queue that keeps its memory, as a ring: std::deque takes a block and gives one back every few
// entries. Entries are made without arguments, and let go of what they own when they are taken.
template <typename T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return slots_[(first_ + index) % slots_.size()]; }
  const T& operator[](std::size_t index) const { return slots_[(first_ + index) % slots_.size()]; }
  T& front() { return slots_[first_]; }
  const T& front() const { return slots_[first_]; }

  void push_back(T entry) {
    if (size_ == slots_.size()) Grow();
    ++size_;
    (*this)[size_ - 1] = std::move(entry);
  }
  T take_front() {
    T entry = std::exchange(slots_[first_], T());
    first_ = (first_ + 1) % slots_.size();
    --size_;
    return entry;
  }
  void clear() {
    while (!empty()) take_front();
  }

 private:
  void Grow() {
    std::vector<T> larger(slots_.empty() ? 8 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> slots_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace pliant
