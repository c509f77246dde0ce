#include "operator/controller/slewed_clock.h"

#include <algorithm>
#include <chrono>

namespace pliant::controller {

using std::chrono::milliseconds;

api::WallTime SlewedClock::Now(api::WallTime system, TimePoint steady) {
  const std::lock_guard lock(mutex_);
  if (!last_) {
    last_ = {system, steady};
    return system;
  }
  const auto passed = std::chrono::floor<milliseconds>(steady - last_->steady);
  // Another thread may have read its clocks earlier and come later.
  if (passed <= milliseconds::zero()) return last_->wall;
  const milliseconds slew_max = passed / 4;
  const api::WallTime straight = last_->wall + passed;
  const milliseconds slew = std::clamp(system - straight, -slew_max, slew_max);
  // Only whole milliseconds have passed: the rest counts the next time.
  last_ = {straight + slew, last_->steady + passed};
  return last_->wall;
}

}  // namespace pliant::controller
