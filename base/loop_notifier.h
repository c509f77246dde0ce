#pragma once

#include <functional>
#include <memory>

namespace pliant {

class EventLoop;

// Calls an event loop from other threads, again and again. Rings that the loop has not come to yet
// are one: a thread that is busy wakes it once for many things.
class LoopNotifier {
 public:
  // `on_notify` runs on the loop, which outlives the notifier.
  LoopNotifier(EventLoop& loop, std::function<void()> on_notify);
  // On the loop's thread: `on_notify` does not run any more.
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
