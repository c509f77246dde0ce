#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace pliant {

// Makes a connection continue, from any thread. May outlive it and its loop.
class ConnectionWaker : public std::enable_shared_from_this<ConnectionWaker> {
 public:
  // `advance` runs on the loop of `context`.
  ConnectionWaker(boost::asio::io_context& context, std::function<void()> advance)
      : context_(context), advance_(std::move(advance)) {}

  // All calls of Wake before `advance` runs cause one call of it.
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

  // Nothing is posted from here on: the loop may no longer exist.
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }

 private:
  boost::asio::io_context& context_;
  const std::function<void()> advance_;
  std::mutex mutex_;
  bool posted_ = false;  // guarded by mutex_; a call of advance_ is posted
  bool ended_ = false;   // guarded by mutex_
};

}  // namespace pliant
