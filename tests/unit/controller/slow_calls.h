#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "base/event_loop.h"
#include "base/sim_event_loop.h"

namespace pliant::controller {

// A loop with an executor of `threads` threads. Each call occupies its thread, and its answer
// waits, for the time that the client sets.
class SlowCalls final : public EventLoop {
 public:
  SlowCalls(SimEventLoop& loop, int threads) : loop_(loop), free_(threads) {}
  TimePoint Now() const override { return loop_.Now(); }
  void Post(std::function<void()> task) override { loop_.PostAfter(took, std::move(task)); }
  TimerId PostAfter(Duration delay, std::function<void()> task) override {
    return loop_.PostAfter(delay, std::move(task));
  }
  void Cancel(TimerId timer) override { loop_.Cancel(timer); }

  void Run(std::function<void()> task) {
    tasks_.push_back(std::move(task));
    Begin();
  }

  Duration took{};  // duration of the last call

 private:
  void Begin() {
    while (free_ > 0 && !tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      --free_;
      task();
      loop_.PostAfter(took, [this] {
        ++free_;
        Begin();
      });
    }
  }

  SimEventLoop& loop_;
  int free_;
  std::deque<std::function<void()>> tasks_;
};

}  // namespace pliant::controller
