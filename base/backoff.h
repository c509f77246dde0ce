#pragma once

#include "base/event_loop.h"

namespace pliant {

struct BackoffOptions {
  Duration first = std::chrono::milliseconds(800);
  Duration most = std::chrono::seconds(30);
  double factor = 2.0;
  double jitter = 1.0;  // a delay d becomes d · (1 + jitter·r), r in [0, 1)
};

// Growing delays between attempts. The caller passes the randomness in, so that a simulation can be
// replayed.
class Backoff {
 public:
  explicit Backoff(BackoffOptions options) : options_(options), next_(options.first) {}

  // The delay before the next attempt; `random` in [0, 1). Later delays are longer, up to `most`
  // (before jitter).
  Duration Next(double random);
  void Reset() { next_ = options_.first; }

 private:
  BackoffOptions options_;
  Duration next_;
};

}  // namespace pliant
