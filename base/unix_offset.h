#pragma once

#include <chrono>

#include "base/event_loop.h"

namespace pliant {

// The seconds to add to a loop's time to have Unix time, by the clock of this moment.
inline double UnixOffsetSeconds(const EventLoop& loop) {
  const auto unix_now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(unix_now).count() - ToSeconds(loop.Now().time_since_epoch());
}

}  // namespace pliant
