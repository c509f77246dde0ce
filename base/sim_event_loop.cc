#include "base/sim_event_loop.h"

#include <algorithm>

namespace pliant {

TimerId SimEventLoop::PostAfter(Duration delay, std::function<void()> task) {
  const TimePoint due = now_ + std::max(delay, Duration::zero());
  const TimerId timer = ++last_timer_;
  tasks_.emplace(Key{due, timer}, std::move(task));
  due_.emplace(timer, due);
  return timer;
}

void SimEventLoop::Cancel(TimerId timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  tasks_.erase(Key{found->second, timer});
  due_.erase(found);
}

bool SimEventLoop::RunOne() {
  if (tasks_.empty()) return false;
  auto next = tasks_.extract(tasks_.begin());
  now_ = next.key().first;
  due_.erase(next.key().second);
  next.mapped()();
  return true;
}

void SimEventLoop::RunUntil(TimePoint end) {
  while (!tasks_.empty() && tasks_.begin()->first.first <= end) RunOne();
  now_ = std::max(now_, end);
}

bool SimEventLoop::RunUntilTrue(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now_ + limit;
  while (!done()) {
    if (tasks_.empty() || tasks_.begin()->first.first > end) return false;
    RunOne();
  }
  return true;
}

}  // namespace pliant
