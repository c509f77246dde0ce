#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string_view>

#include "base/event_loop.h"
#include "operator/api/time.h"

namespace pliant::controller {

// Whether this process' clock agrees with the API server's. Some of what a clock decides cannot be
// taken back: a job that fails for good, or is deleted. Any thread.
class ClockCheck {
 public:
  static constexpr std::chrono::seconds kTolerance{30};

  // `now`: of the clock that is checked; any thread.
  explicit ClockCheck(std::function<api::WallTime()> now) : now_(std::move(now)) {}

  // An answer that took so long had this "Date" header; "": it had none.
  void OnDate(std::string_view date, Duration took);
  // How far this process' clock is ahead of the server's, by the last answer; 0 if it may be right.
  std::chrono::milliseconds ahead() const;
  // True as long as no server has told its time.
  bool Agrees() const { return std::chrono::abs(ahead()) <= kTolerance; }

 private:
  const std::function<api::WallTime()> now_;
  mutable std::mutex mutex_;
  std::chrono::milliseconds ahead_{};  // guarded by mutex_
};

}  // namespace pliant::controller
