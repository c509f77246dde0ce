#pragma once

#include <algorithm>

#include "base/event_loop.h"

namespace pliant::kube {

// A rate limiter: lets `burst` through at once and then `rate` per second, in order of arrival. It
// only counts; the caller waits. A rate of 0 means no limit.
class TokenBucket {
 public:
  TokenBucket(double rate, int burst) : rate_(rate), burst_(burst), tokens_(burst) {}

  // Takes a token and returns how long to wait until it may be used.
  Duration Reserve(TimePoint now) {
    if (rate_ <= 0) return Duration::zero();
    Refill(now);
    tokens_ -= 1;
    return tokens_ >= 0 ? Duration::zero() : ToDuration(-tokens_ / rate_);
  }

  // Takes a token only if it may be used now.
  bool TryTake(TimePoint now) {
    if (rate_ <= 0) return true;
    Refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  static Duration ToDuration(double seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  void Refill(TimePoint now) {
    tokens_ = std::min<double>(burst_, tokens_ + rate_ * ToSeconds(now - refilled_));
    refilled_ = std::max(refilled_, now);
  }

  double rate_;
  double burst_;
  double tokens_;         // negative: reserved in advance
  TimePoint refilled_{};  // the bucket starts full, so that any start time will do
};

}  // namespace pliant::kube
