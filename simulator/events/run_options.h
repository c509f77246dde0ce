#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
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

// Uniform in (0, 1]; the standard's distributions differ between libraries.
inline double DrawUniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
}

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
};

// The speeds of jobs that the planner knows.
enum class KnownSpeeds {
  kNone,
  kTrue,
  kLearned,  // fitted to what was measured in the run, of all jobs of the same application together
};

struct RunOptions {
  planner::Policy policy;
  std::variant<LiveResizing, Restarting> resizing;
  KnownSpeeds speeds = KnownSpeeds::kTrue;
  double measurement_noise = 0;         // at most this part of a measured time, evenly distributed
  std::int64_t measure_after = 10'000;  // a size counts as tried after it has trained this long
  std::int64_t plan_after = 500;        // events of this time have one plan
  std::int64_t plan_every = 0;          // plans only at multiples of this; 0: at events
  std::int64_t checkpoint_every = 300'000;
  std::optional<Failures> failures;
  std::uint64_t seed = 1;  // of failures and noise
  // Makes a plan, for callers that measure how long that takes; absent: MakePlan.
  std::function<planner::Plan(const planner::ClusterSnapshot&, const planner::Policy&,
                              planner::FitMemory&)>
      make_plan;
  std::int64_t max_time = 100'000'000'000;  // 3 years; jobs that are not done then stay so
};

}  // namespace pliant::simulator
