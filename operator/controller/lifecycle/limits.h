#pragma once

#include <optional>

#include "operator/controller/lifecycle/learner_policy.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// Reports whether less holds than the job asks for.
void ReportLimits(const JobView& view, const std::optional<JobPlan>& plan, WallTime now,
                  api::JobStatus& status);

}  // namespace pliant::controller
