#pragma once

#include <map>
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

// The decision about a job's learners.
struct LearnerOutcome {
  int next_learner = 0;  // the new status.nextLearner, written before the actions
  std::vector<Action> actions;
  std::map<std::string, WallTime> leaving_since;  // to be stored, like the next
  std::map<std::string, WallTime> unnotified_since;
  std::optional<WallTime> look_again;
};

// Creates granted learners, opens gates, and drains dropped learners: one that has started is asked
// to leave through the coordinator, and deleted only when it outlives its grace period; one that
// has not started is deleted at once. While the coordinator is unreachable, a learner keeps its
// GPUs no longer than its grace period and a minute: then it is deleted, and leaves, too, after a
// checkpoint if it is the last.
LearnerOutcome DecideLearners(const JobView& view, const JobPlan& plan, WallTime now);

// The same for a job that has ended: deletes the remaining learners; if it `completed`, running
// ones first have their grace period.
LearnerOutcome TerminateLearners(const JobView& view, bool completed, WallTime now);

// Searches for pods that the stores may not show correctly: pods that they have long failed to show
// as they were written, and pods that the coordinator names and the stores never showed. A few at a
// time.
struct PodSearch {
  std::vector<LookForPod> actions;
  std::optional<WallTime> searched_at;  // to be stored
  std::optional<WallTime> look_again;
};
PodSearch LookForPods(const JobView& view, WallTime now);

// The learners of the plan for the coordinator: all that exist, and those that it still reports.
// The latter have ended if their pods disappeared or a search did not find them. `leaving`: by
// name, in addition to those whose pods are being deleted.
std::vector<PlannedLearner> WantedLearners(const JobView& view,
                                           const std::map<std::string, WallTime>& leaving);

}  // namespace pliant::controller
