#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// The part of a plan for one job.
struct JobPlan {
  planner::Decision decision;
  std::vector<std::string> open;  // names of learners whose gates may open now
};

// The granted learners to create, and the gates to open.
struct Grants {
  int next_learner = 0;  // the new status.nextLearner, written before the actions
  std::vector<Action> actions;
};
Grants DecideGrants(const JobView& view, const JobPlan& plan);

// Deletes the remaining learners of a job that has ended; if it `completed`, running ones first
// have their grace period.
struct Termination {
  std::vector<Action> actions;
  std::optional<WallTime> look_again;
};
Termination TerminateLearners(const JobView& view, bool completed, WallTime now);

// Searches for pods that the stores may not show correctly: pods that they have long failed to show
// as they were written, and pods that the coordinator names and the stores never showed. A few at a
// time.
struct PodSearch {
  std::vector<LookForPod> actions;
  std::optional<WallTime> searched_at;  // to be stored
  std::optional<WallTime> look_again;
};
PodSearch LookForPods(const JobView& view, WallTime now);

}  // namespace pliant::controller
