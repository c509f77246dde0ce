#pragma once

#include <optional>

#include "base/earliest.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::planner {

// Whether something is on that is on from `begin` for `length`, then off for `pause`, and so on,
// each time twice as long. `again_at`: when that changes.
inline bool IsOn(WallTime begin, Seconds length, Seconds pause, WallTime now,
                 std::optional<WallTime>& again_at) {
  while (now >= begin + length) {
    begin += length + pause;
    length *= 2;
  }
  const bool is_on = now >= begin;
  KeepEarliest(is_on ? begin + length : begin, again_at);
  return is_on;
}

}  // namespace pliant::planner
