#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string_view>

#include "base/event_loop.h"
#include "operator/api/time.h"

namespace pliant::controller {

// Whether this process's clock agrees with the API server's. Some decisions by the clock are
// irreversible: a job fails permanently, or is deleted. Any thread.
class ClockCheck {
 public:
  static constexpr std::chrono::seconds kTolerance{30};

  // `now` reads the clock that is checked; any thread.
  explicit ClockCheck(std::function<api::WallTime()> now) : now_(std::move(now)) {}

  // An answer came `took` after its request and had this "Date" header; "": it had none.
  void OnDate(std::string_view date, Duration took);
  // How far this process's clock is ahead of the server's, by the last answer; 0 if it may be
  // right.
  std::chrono::milliseconds ahead() const;
  // True until a server has sent its time.
  bool Agrees() const { return std::chrono::abs(ahead()) <= kTolerance; }

 private:
  const std::function<api::WallTime()> now_;
  mutable std::mutex mutex_;
  std::chrono::milliseconds ahead_{};  // guarded by mutex_
};

}  // namespace pliant::controller
