#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

// How a cluster behaves in a simulated run. Times are milliseconds.
namespace pliant::simulator {

// Time 0 of a run, for the planner.
inline constexpr planner::WallTime kBegin{std::chrono::sys_days{std::chrono::year{2000} / 1 / 1}};
inline planner::WallTime ToWall(std::int64_t time) {
  return kBegin + std::chrono::milliseconds(time);
}
inline std::int64_t FromWall(planner::WallTime time) { return (time - kBegin).count(); }

// Learners join and leave between two steps.
struct LiveResizing {
  std::int64_t start = 15'000;  // from the open gate to a learner that trains
  std::int64_t pause = 100;     // of the training, at each change of its learners
  std::int64_t leave = 2'000;   // in which a learner that leaves still holds its GPUs
};

// A job with other learners than before holds their GPUs and does not train for a while.
struct Restarting {
  std::int64_t pause = 30'000;
};

// Nodes are lost at random, as often as this on average, and come back.
struct Failures {
  std::int64_t mean_between = 6 * 3'600'000;  // of one node
  std::int64_t repair = 600'000;
  std::uint64_t seed = 1;
};

// The speeds of jobs that the planner knows.
enum class KnownSpeeds { kNone, kTrue };

struct RunOptions {
  planner::Policy policy;
  std::variant<LiveResizing, Restarting> resizing;
  KnownSpeeds speeds = KnownSpeeds::kTrue;
  std::int64_t plan_after = 500;  // events of this time have one plan
  std::int64_t plan_every = 0;    // plans only at multiples of this; 0: at events
  std::int64_t checkpoint_every = 300'000;
  std::optional<Failures> failures;
  std::int64_t max_time = 100'000'000'000;  // 3 years; jobs that are not done then stay so
};

}  // namespace pliant::simulator
