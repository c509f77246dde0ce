#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace pliant {

// The numbers of borrowed payloads that have been read. Their readers may run on other threads, and
// outlive the connection.
class ShmReturnQueue {
 public:
  // `wake`: called after each Add, on its thread.
  explicit ShmReturnQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Add(std::uint64_t number) {
    {
      const std::lock_guard lock(mutex_);
      numbers_.push_back(number);
    }
    wake_();
  }

  // Moves the numbers since the last call into `numbers`, which is empty before.
  void MoveTo(std::vector<std::uint64_t>& numbers) {
    const std::lock_guard lock(mutex_);
    numbers.swap(numbers_);
  }

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<std::uint64_t> numbers_;  // guarded by mutex_
};

}  // namespace pliant
