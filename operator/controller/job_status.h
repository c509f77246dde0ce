#pragma once

#include <optional>

#include "operator/controller/failure_policy.h"
#include "operator/controller/job_view.h"
#include "operator/controller/learner_policy.h"

// What a job's status says. One write at the end of a decision; none when nothing is new.
namespace pliant::controller {

// Copies into `status` what the coordinator reports: membership, sizes, figures.
void ReportProgress(const JobView& view, api::JobStatus& status);

// Copies what the plan gives the job, and since when.
void ReportPlan(const planner::Decision& decision, WallTime now, api::JobStatus& status);

api::JobPhase PhaseOf(const JobView& view, const std::optional<JobPlan>& plan);

// Conditions Running and Progressing, for a job that has not ended.
void ReportConditions(const JobView& view, const std::optional<JobPlan>& plan,
                      const FailureVerdict& failures, WallTime now, api::JobStatus& status);

// Condition CheckpointsWritten; as it was while nothing is heard of an attempt.
void ReportCheckpoints(const JobView& view, WallTime now, api::JobStatus& status);

// Progress alone is written at most every 30 s, each job at moments of its own.
struct WriteDecision {
  bool write = false;
  std::optional<WallTime> due;  // when there are figures to be written, or may be
};
WriteDecision DecideWrite(const api::JobStatus& before, const api::JobStatus& after,
                          const std::string& uid, const std::optional<WallTime>& figures_written,
                          WallTime now);

}  // namespace pliant::controller
