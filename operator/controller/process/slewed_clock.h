#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "base/event_loop.h"
#include "operator/api/time.h"

namespace pliant::controller {

// Wall time that never jumps. Timeouts of jobs are differences of wall times, because some of them
// outlive the process; if somebody sets the machine's clock, they would all expire at once. This
// clock continues at its own pace, and follows the machine's by running at most a quarter faster or
// slower ("slewing"). Any thread.
class SlewedClock {
 public:
  // `system` and `steady`: what the machine's two clocks show now. Never returns less than before.
  api::WallTime Now(api::WallTime system, TimePoint steady);

 private:
  struct Reading {
    std::chrono::sys_time<Duration>
        wall;  // finer than milliseconds: a correction may be less than one
    TimePoint steady;
  };

  std::mutex mutex_;
  std::optional<Reading> last_;  // guarded by mutex_
};

}  // namespace pliant::controller
