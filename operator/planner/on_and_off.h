#pragma once

#include <optional>

#include "base/earliest.h"
#include "operator/planner/cluster_snapshot.h"

// Whether something is on that is on from `begin` for `length`, then off for `pause`, and so on.
// `again_at`: when that changes.
namespace pliant::planner {

// On twice as long each time: what is waited for comes in the end.
inline bool IsOnEverLonger(WallTime begin, Seconds length, Seconds pause, WallTime now,
                           std::optional<WallTime>& again_at) {
  while (now >= begin + length) {
    begin += length + pause;
    length *= 2;
  }
  const bool is_on = now >= begin;
  KeepEarliest(is_on ? begin + length : begin, again_at);
  return is_on;
}

// Off twice as long each time: what is waited for may never come.
inline bool IsOnEverRarer(WallTime begin, Seconds length, Seconds pause, WallTime now,
                          std::optional<WallTime>& again_at) {
  while (now >= begin + length) {
    begin += length + pause;
    pause *= 2;
  }
  const bool is_on = now >= begin;
  KeepEarliest(is_on ? begin + length : begin, again_at);
  return is_on;
}

}  // namespace pliant::planner
