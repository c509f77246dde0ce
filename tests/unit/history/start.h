#pragma once

#include <chrono>

#include "operator/history/values.h"

namespace pliant::history {

// When the tests' timelines begin.
inline constexpr WallTime kStart{std::chrono::milliseconds{1'800'000'000'000}};

}  // namespace pliant::history
