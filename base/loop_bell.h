#pragma once

#include <functional>
#include <memory>

namespace pliant {

class EventLoop;

// Calls an event loop from other threads, again and again. Rings that the loop has not come to yet
// are one: a thread that is busy wakes it once for many things.
class LoopBell {
 public:
  // `on_ring` runs on the loop, which outlives the bell.
  LoopBell(EventLoop& loop, std::function<void()> on_ring);
  // On the loop's thread: `on_ring` does not run any more.
  ~LoopBell();
  LoopBell(const LoopBell&) = delete;
  LoopBell& operator=(const LoopBell&) = delete;

  void Ring();  // any thread

 private:
  struct State;

  EventLoop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace pliant
