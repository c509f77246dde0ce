#include "base/event_loop.h"

namespace pliant {

double ToSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

TimePoint MonotonicNow() { return TimePoint(std::chrono::steady_clock::now().time_since_epoch()); }

}  // namespace pliant
