#pragma once

#include <optional>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

namespace pliant::planner {

// Whether the grant of this learner is withdrawn: it did not start in time. One that the scheduler
// calls unschedulable is not waited for as long as one whose image is pulled.
bool IsWithdrawn(const JobView& job, const LearnerView& learner, WallTime now);

struct Withdrawal {
  LearnerCount learners = 0;         // found now that did not start in time
  std::optional<DemandCap> cap;      // to be returned with the next snapshot
  std::optional<WallTime> again_at;  // when that may change
};

// Decides on the grants of a job with `present` learners that do not leave. A job that could not
// start with the others gives all of them back at once: they would not help it. Learners of
// one grant are one failure, however many times it takes to see it.
Withdrawal WithdrawGrants(const JobView& job, LearnerCount present, const Policy& policy,
                          WallTime now);

}  // namespace pliant::planner
