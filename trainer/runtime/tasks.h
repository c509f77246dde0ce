#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "base/event_loop.h"
#include "base/lifetime.h"

namespace pliant {

// The event loop as one learner uses it: posted tasks and guarded callbacks do nothing once the
// learner has exited or is destroyed.
class Tasks {
 public:
  // `after_each` runs after each task, each guarded callback and each handler.
  Tasks(EventLoop& loop, std::function<void()> after_each)
      : loop_(loop), after_each_(std::move(after_each)) {}

  TimePoint Now() const { return loop_.Now(); }
  void After(Duration delay, std::function<void()> task) {
    loop_.PostAfter(delay, [this, watch = lifetime_.watch(), task = std::move(task)] {
      if (watch.over()) return;
      task();
      if (!watch.over()) after_each_();
    });
  }
  template <typename T>
  std::function<void(T)> Guard(std::type_identity_t<std::function<void(T)>> callback) const {
    return [this, watch = lifetime_.watch(), callback = std::move(callback)](T value) {
      if (watch.over()) return;
      callback(std::forward<T>(value));
      if (!watch.over()) after_each_();
    };
  }
  // Handles an event at once.
  template <typename Handler>
  void Handle(const Handler& handler) const {
    if (ended_) return;
    const Lifetime::Watch watch = lifetime_.watch();
    handler();
    if (!watch.over()) after_each_();
  }
  // Cancels all tasks and callbacks until now; no handler runs from here on.
  void End() {
    ended_ = true;
    lifetime_.Renew();
  }
  bool ended() const { return ended_; }

 private:
  EventLoop& loop_;
  const std::function<void()> after_each_;
  Lifetime lifetime_;
  bool ended_ = false;
};

}  // namespace pliant
