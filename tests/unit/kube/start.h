#pragma once

#include "base/event_loop.h"

namespace pliant::kube {

inline const TimePoint kStart{std::chrono::seconds(1000)};  // of tests on a clock of their own

}  // namespace pliant::kube
