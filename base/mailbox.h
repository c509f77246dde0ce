#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace pliant {

// An unbounded queue between threads. Take blocks; after Close it returns the remaining items, then
// nullopt.
template <typename T>
class Mailbox {
 public:
  // Drops the item if the mailbox is closed.
  void Put(T item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
  }

  // Blocks until there is an item, the mailbox is closed or `stop` is requested (the last two
  // return nullopt).
  std::optional<T> Take(std::stop_token stop = {}) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return closed_ || !items_.empty(); });
    if (items_.empty() || stop.stop_requested()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<T> items_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
};

}  // namespace pliant
