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
  bool clock_agrees = true;       // with the API server's, roughly
  // Whether granted learners may be served: not while the job backs off after that has failed.
  bool serves = true;
};

// The decision on one job. The status is written first, conditional on the job as it was read, and
// nothing else happens if that fails: so a decision on old data has no effect.
struct Outcome {
  api::JobStatus status;
  bool write_status = false;
  std::vector<Action> actions;  // in this order; the first failure ends them
  bool held_back = false;       // actions that serve learners are left out, because it backs off
  JobSoftState soft_state;      // as it is once the status is written
  std::optional<WallTime> look_again;  // when time alone may change the answer
};

// Decides on one job. `plan` is there if the planner was asked about the job, see IsPlanned. Pure:
// time is an argument.
Outcome ReconcileJob(const JobView& view, const std::optional<JobPlan>& plan,
                     const LifecycleOptions& options, WallTime now);

// Reports that the operator leaves the job alone, because operator processes crashed on it.
Outcome ReportQuarantine(const JobView& view, WallTime now);

// Whether the planner is asked about the job: it is admitted, or about to be, or still has
// learners.
bool IsPlanned(const JobView& view);

}  // namespace pliant::controller
