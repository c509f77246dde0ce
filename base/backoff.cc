#include "base/backoff.h"

#include <algorithm>

namespace pliant {

Duration Backoff::Next(double random) {
  const Duration base = next_;
  next_ = std::min(options_.most,
                   std::chrono::duration_cast<Duration>(base * std::max(1.0, options_.factor)));
  return std::chrono::duration_cast<Duration>(base * (1.0 + options_.jitter * random));
}

}  // namespace pliant
