#pragma once

#include <optional>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/model/progress.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// What this program wrote to status last.
struct LastReported {
  std::optional<api::WallTime> at;            // nothing: nothing yet
  std::optional<planner::ReasonCode> reason;  // of the sentence in status
  bool operator==(const LastReported&) const = default;
};

// How often what a coordinator says goes to status. Twice a second at most, except for bursts.
struct WriteBudget {
  double writes = 60;               // that are left
  std::optional<api::WallTime> at;  // then
  bool operator==(const WriteBudget&) const = default;
};

struct Reporting {
  LastReported last;
  std::optional<api::WallTime> next_progress_write;
  WriteBudget budget;
  // What the program asked for, where the cluster's definition of the resource is older than this
  // operator: it was written to status and came back without.
  std::optional<int> learners_asked_dropped;
  bool operator==(const Reporting&) const = default;
};

// Fills the budget up to `now`. When it has a write again, if it has none.
std::optional<api::WallTime> WhenWriteIsLeft(api::WallTime now, WriteBudget& budget);

// What was dropped counts until the program asks for another number.
void ObserveReported(const Progress* progress, Reporting& reporting);

// `sent` was written, and the server has `kept` of it; null: it could not be written, and what was
// reported `before` counts again. Whether it is news that the server drops learnersAsked.
bool OnStatusWritten(const api::JobStatus& sent, const api::JobStatus* kept,
                     const LastReported& before, Reporting& reporting);

}  // namespace pliant::controller
