#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace pliant {

// Has a connection go on, from any thread. May outlive it and its loop.
class ConnectionWaker : public std::enable_shared_from_this<ConnectionWaker> {
 public:
  // `advance` runs on the loop of `context`.
  ConnectionWaker(boost::asio::io_context& context, std::function<void()> advance)
      : context_(context), advance_(std::move(advance)) {}

  // One call of `advance` follows what any number of Wakes before it report.
  void Wake() {
    const std::lock_guard lock(mutex_);
    if (ended_ || std::exchange(posted_, true)) return;
    boost::asio::post(context_, [self = shared_from_this()] {
      {
        const std::lock_guard guard(self->mutex_);
        self->posted_ = false;
      }
      self->advance_();
    });
  }

  // Nothing is posted any more: the loop may be gone from here on.
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }

 private:
  boost::asio::io_context& context_;
  const std::function<void()> advance_;
  std::mutex mutex_;
  bool posted_ = false;  // guarded by mutex_: advance_ is on its way
  bool ended_ = false;   // guarded by mutex_
};

}  // namespace pliant
