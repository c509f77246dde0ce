#include "operator/controller/process/clock_check.h"

#include "base/log.h"

namespace pliant::controller {

using std::chrono::milliseconds;
using std::chrono::seconds;

void ClockCheck::OnDate(std::string_view date, Duration took) {
  const auto told = api::ParseHttpDate(date);
  if (!told) return;
  const api::WallTime now = now_();
  // The server's clock showed that second at some time between the request and its answer.
  const api::WallTime earliest = now - std::chrono::ceil<milliseconds>(took);
  milliseconds ahead{};
  if (*told > now) ahead = now - *told;
  if (*told + seconds(1) < earliest) ahead = earliest - *told - seconds(1);
  const std::lock_guard lock(mutex_);
  const bool agreed = std::chrono::abs(ahead_) <= kTolerance;
  ahead_ = ahead;
  const bool agrees = std::chrono::abs(ahead_) <= kTolerance;
  if (agreed && !agrees) {
    log::Warning(
        "the operator's clock and the API server's disagree: until they agree no job is "
        "failed or deleted because of a time limit",
        {{"ahead_seconds", std::chrono::floor<seconds>(ahead).count()}});
  } else if (!agreed && agrees) {
    log::Info("the operator's clock and the API server's agree again");
  }
}

milliseconds ClockCheck::ahead() const {
  const std::lock_guard lock(mutex_);
  return ahead_;
}

}  // namespace pliant::controller
