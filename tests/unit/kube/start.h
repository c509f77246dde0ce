#pragma once

#include "base/event_loop.h"

namespace pliant::kube {

inline const TimePoint kStart{std::chrono::seconds(1000)};  // for tests with a simulated clock

}  // namespace pliant::kube
