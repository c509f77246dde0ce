#pragma once

#include <functional>
#include <string>

#include "operator/controller/actions/job_table.h"
#include "operator/controller/rounds/crash_notes.h"
#include "operator/metrics/metrics.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// `decision`: null for a job that is not planned.
metrics::JobStats StatsOf(const JobView& view, const planner::Decision* decision);

// Updates the metrics of all queues and pools.
void ReportQueues(const planner::ClusterSnapshot& snapshot, const planner::Plan& plan,
                  metrics::Metrics& metrics);

// Updates the metrics of all jobs. `is_there`: whether the job of this uid still exists.
void ReportJobs(const JobTable::Views& views, const planner::Plan& plan,
                const CrashNotes* crash_notes,
                const std::function<bool(const std::string& job_uid)>& is_there,
                metrics::Metrics& metrics);

}  // namespace pliant::controller
