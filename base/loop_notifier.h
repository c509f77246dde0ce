#pragma once

#include <functional>
#include <memory>

namespace pliant {

class EventLoop;

// Calls an event loop from other threads, any number of times. Notifications that the loop has not
// handled yet are merged: a busy thread wakes the loop once for many events.
class LoopNotifier {
 public:
  // `on_notify` runs on the loop, which outlives the notifier.
  LoopNotifier(EventLoop& loop, std::function<void()> on_notify);
  // Called on the loop's thread; `on_notify` does not run after it.
  ~LoopNotifier();
  LoopNotifier(const LoopNotifier&) = delete;
  LoopNotifier& operator=(const LoopNotifier&) = delete;

  void Notify();  // any thread

 private:
  struct State;

  EventLoop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace pliant
