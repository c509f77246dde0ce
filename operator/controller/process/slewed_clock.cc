#include "operator/controller/process/slewed_clock.h"

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
  const Duration passed = steady - last_->steady;
  // Another thread may have read its clocks earlier and arrived later.
  if (passed > Duration::zero()) {
    const Duration max_slew = passed / 4;
    const auto straight = last_->wall + passed;
    const Duration slew = std::clamp<Duration>(system - straight, -max_slew, max_slew);
    last_ = {straight + slew, steady};
  }
  return std::chrono::floor<milliseconds>(last_->wall);
}

}  // namespace pliant::controller
