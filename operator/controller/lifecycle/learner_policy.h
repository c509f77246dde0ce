#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// What the plan says of one job.
struct JobPlan {
  planner::Decision decision;
  std::vector<std::string> open;  // names of learners whose gates may open now
};

// What is to be done about a job's learners.
struct LearnerOutcome {
  int next_learner = 0;  // the status' nextLearner to be, written before the actions
  std::vector<Action> actions;
  std::map<std::string, WallTime> leaving_since;  // to be remembered, as is the next
  std::map<std::string, WallTime> unnotified_since;
  std::optional<WallTime> look_again;
};

// Creates what was granted, opens gates, lets go what was dropped: a learner that has started is
// told by way of the coordinator, and deleted only when it outlives its grace; one that has not is
// deleted at once. While the coordinator cannot be reached nobody is told; but nobody keeps his
// GPUs for that for longer than his grace and a minute: who is deleted leaves, too, after a
// checkpoint if he is the last.
LearnerOutcome DecideLearners(const JobView& view, const JobPlan& plan, WallTime now);

// The same for a job that has ended: whoever is left goes, after the grace if it `completed`.
LearnerOutcome TerminateLearners(const JobView& view, bool completed, WallTime now);

// Pods of which the stores may not know the truth: those that they have not shown for long as they
// were written, and those that the coordinator names and nobody has seen. A few at a time.
struct PodSearch {
  std::vector<LookForPod> actions;
  std::optional<WallTime> searched_at;  // to be remembered
  std::optional<WallTime> look_again;
};
PodSearch LookForPods(const JobView& view, WallTime now);

// What the coordinator is to be told: all learners that exist, and those it still speaks of: they
// have ended if they were seen to go, or were looked for in vain. `leaving`: by name, beside those
// whose pods are being deleted.
std::vector<PlannedLearner> WantedLearners(const JobView& view,
                                           const std::map<std::string, WallTime>& leaving);

}  // namespace pliant::controller
