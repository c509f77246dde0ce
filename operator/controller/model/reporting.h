#pragma once

#include <optional>

#include "operator/api/elastic_training_job.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// The last write of status by this process.
struct LastReported {
  std::optional<api::WallTime> at;            // nullopt: nothing written yet
  std::optional<planner::ReasonCode> reason;  // of the message in status.reason
  bool operator==(const LastReported&) const = default;
};

// Limits the writes of status that a coordinator's reports cause: a burst of at most 60, then one
// every 2 s.
struct WriteBudget {
  double writes = 60;               // left at time `at`
  std::optional<api::WallTime> at;  // when `writes` was computed
  bool operator==(const WriteBudget&) const = default;
};

struct Reporting {
  LastReported last;
  std::optional<api::WallTime> next_progress_write;
  WriteBudget budget;
  bool operator==(const Reporting&) const = default;
};

// Refills the budget up to `now`. Returns when a write is available again; nullopt: one is
// available.
std::optional<api::WallTime> WhenWriteIsLeft(api::WallTime now, WriteBudget& budget);

}  // namespace pliant::controller
