#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/event_loop.h"

namespace pliant {

// Virtual time: a task takes none, and time jumps to the next task. Single-threaded (Post too).
class SimEventLoop final : public EventLoop {
 public:
  TimePoint Now() const override { return now_; }
  void Post(std::function<void()> task) override { PostAfter(Duration::zero(), std::move(task)); }
  TimerId PostAfter(Duration delay, std::function<void()> task) override;
  void Cancel(TimerId timer) override;

  // Runs the next task. False when there is none.
  bool RunOne();
  // Runs what is due until `end`, and leaves the time there.
  void RunUntil(TimePoint end);
  void RunFor(Duration duration) { RunUntil(now_ + duration); }
  // Runs until `done` holds after a task, for at most `limit` of virtual time. Whether it came to
  // hold.
  bool RunUntilTrue(const std::function<bool()>& done, Duration limit);
  std::size_t pending() const { return tasks_.size(); }

 private:
  // The timer id breaks ties, so tasks of one instant run in the order in which they were posted.
  using Key = std::pair<TimePoint, TimerId>;

  TimePoint now_{};
  TimerId last_timer_ = 0;
  std::map<Key, std::function<void()>> tasks_;
  std::unordered_map<TimerId, TimePoint> due_;
};

}  // namespace pliant
