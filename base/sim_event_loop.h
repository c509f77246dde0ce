#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/event_loop.h"

namespace pliant {

// An event loop with virtual time: a task takes no time, and time jumps to the next task.
// Single-threaded (Post too).
class SimEventLoop final : public EventLoop {
 public:
  TimePoint Now() const override { return now_; }
  void Post(std::function<void()> task) override { PostAfter(Duration::zero(), std::move(task)); }
  TimerId PostAfter(Duration delay, std::function<void()> task) override;
  void Cancel(TimerId timer) override;

  // Runs the next task. Returns false if there is none.
  bool RunOne();
  // Runs the tasks that are due until `end`, then sets the time to `end`.
  void RunUntil(TimePoint end);
  void RunFor(Duration duration) { RunUntil(now_ + duration); }
  // Runs tasks until `done` returns true, for at most `limit` of virtual time. Returns whether it
  // did.
  bool RunUntilTrue(const std::function<bool()>& done, Duration limit);
  std::size_t pending() const { return tasks_.size(); }

 private:
  // The timer id breaks ties, so tasks that are due at the same time run in the order in which they
  // were posted.
  using Key = std::pair<TimePoint, TimerId>;

  TimePoint now_{};
  TimerId last_timer_ = 0;
  std::map<Key, std::function<void()>> tasks_;
  std::unordered_map<TimerId, TimePoint> due_;
};

}  // namespace pliant
