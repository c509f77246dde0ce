#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace pliant {

using Duration = std::chrono::nanoseconds;

// The clock of an event loop: monotonic, of no meaning outside its process (or its simulation).
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

// Names a timer so that it can be cancelled. Never reused by one loop; 0 names none.
using TimerId = std::uint64_t;

// One thread of control and its time. Tasks run one at a time, those that one thread posts in the
// order posted, and so timers of equal times. On a SimEventLoop, which tests own and drive, that
// holds between the two as well. On a RealEventLoop, which programs own, a task of another thread
// may overtake those of the loop's own, a timer that is due may overtake tasks, and what is posted
// at one time all runs before sockets and timers have their turn.
class EventLoop {
 public:
  virtual ~EventLoop() = default;
  virtual TimePoint Now() const = 0;

  // Runs `task` soon, never within the call. The one member that other threads may call.
  virtual void Post(std::function<void()> task) = 0;

  // Runs `task` after `delay` (at once if it is not positive, but never within the call).
  virtual TimerId PostAfter(Duration delay, std::function<void()> task) = 0;

  // The task will not run, if it has not begun. Unknown ids are ignored.
  virtual void Cancel(TimerId timer) = 0;
};

}  // namespace pliant
