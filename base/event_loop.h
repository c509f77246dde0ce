#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace pliant {

using Duration = std::chrono::nanoseconds;

// The clock of an event loop: monotonic, without meaning outside its process (or its simulation).
struct LoopClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LoopClock>;
  static constexpr bool is_steady = true;
};
using TimePoint = LoopClock::time_point;

double ToSeconds(Duration duration);

// The time of every RealEventLoop, for threads that have no loop.
TimePoint MonotonicNow();

// Identifies a timer so that it can be cancelled. A loop never reuses an id; 0 is no timer.
using TimerId = std::uint64_t;

// One thread of control and its time. Tasks run one at a time. Tasks posted by one thread run in
// the order posted, and so do timers that are due at the same time. On a SimEventLoop, which tests
// own and drive, this order also holds between tasks and timers. On a RealEventLoop, which programs
// own, a task from another thread may overtake the loop's own tasks, a timer that is due may
// overtake tasks, and all tasks posted at one time run before sockets and timers are served.
class EventLoop {
 public:
  virtual ~EventLoop() = default;
  virtual TimePoint Now() const = 0;

  // Runs `task` soon, never within the call. The only member function that other threads may call.
  virtual void Post(std::function<void()> task) = 0;

  // Runs `task` after `delay` (at once if it is not positive, but never within the call).
  virtual TimerId PostAfter(Duration delay, std::function<void()> task) = 0;

  // Cancels a task that has not started. Unknown ids are ignored.
  virtual void Cancel(TimerId timer) = 0;
};

}  // namespace pliant
