#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/controller/lifecycle/learner_policy.h"
#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

struct LifecycleOptions {
  std::string coordinator_image;  // for jobs that have none yet: a job keeps its own for life
  bool clock_agrees = true;       // with the API server's, about
};

// What is to happen to one job. The status is written first, conditional on the job as it was read,
// and nothing else happens if that fails: so whoever decides on old knowledge only fails.
struct Outcome {
  api::JobStatus status;
  bool write_status = false;
  std::vector<Action> actions;  // in this order; the first that fails ends them
  // What the coordinator is to know of the learners; nothing: tell it nothing new.
  std::optional<std::vector<PlannedLearner>> desired;
  JobSoftState soft_state;             // as it is once the status is written
  std::optional<WallTime> look_again;  // when time alone may change the answer
};

// Decides on one job. `plan` is there if the planner was asked about it: jobs are, once admitted.
// Pure: time is an argument.
Outcome ReconcileJob(const JobView& view, const std::optional<JobPlan>& plan,
                     const LifecycleOptions& options, WallTime now);

// What is told of a job that the operator leaves alone, because its processes died at it.
Outcome ReportQuarantine(const JobView& view, WallTime now);

// Whether the planner is asked about the job: one that is admitted, or is about to be, or that has
// learners still.
bool IsPlanned(const JobView& view);

}  // namespace pliant::controller
