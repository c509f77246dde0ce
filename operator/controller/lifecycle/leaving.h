#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// How a job's learners leave.
struct Leaving {
  std::map<std::string, WallTime> leaving_since;  // to be stored, like the next
  std::map<std::string, WallTime> unnotified_since;
  std::vector<DeletePod> deletions;
  std::vector<PlannedLearner> plan;  // the learners of the next plan for the coordinator
  std::optional<WallTime> look_again;
};

// Drains dropped learners: one that has started is asked to leave through the coordinator, and
// deleted only when it outlives its grace period; one that has not started is deleted at once.
// While the coordinator is unreachable, a learner keeps its GPUs no longer than its grace period
// and a minute: then it is deleted, and leaves, too, after a checkpoint if it is the last. Others
// wait for the GPUs, so this depends on nothing else that is done for the job. Pure.
Leaving DecideLeaving(const JobView& view, const planner::Decision& decision, WallTime now);

}  // namespace pliant::controller
