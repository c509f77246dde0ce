#pragma once

#include <optional>

#include "operator/controller/lifecycle/failure_policy.h"
#include "operator/controller/lifecycle/learner_policy.h"
#include "operator/controller/model/job_view.h"

// The content of a job's status. One write at the end of a decision; none when nothing is new.
namespace pliant::controller {

// Copies into `status` what the coordinator reports: membership, sizes, stats.
void ReportProgress(const JobView& view, api::JobStatus& status);

// Copies what the plan gives the job, and the time when that changed.
void ReportPlan(const JobView& view, const planner::Decision& decision, WallTime now,
                api::JobStatus& status);

api::JobPhase PhaseOf(const JobView& view, const std::optional<JobPlan>& plan,
                      const FailureVerdict& failures);

// Conditions HasPlace, Running and Progressing, for a job that has not ended.
void ReportConditions(const JobView& view, const std::optional<JobPlan>& plan,
                      const FailureVerdict& failures, WallTime now, api::JobStatus& status);

// Condition CheckpointsWritten; unchanged while the coordinator reports no attempt.
void ReportCheckpoints(const JobView& view, WallTime now, api::JobStatus& status);

struct StatusChange {
  const api::JobStatus& before;
  const api::JobStatus& after;
  // The plan's reason is the one reported last, perhaps with other numbers: the numbers of all jobs
  // change when a job comes or goes.
  bool same_reason = false;
};
// Progress alone is written at most every 30 s, with a jitter for each job. A change of
// attainedGpuSeconds alone is not written: it grows with time.
struct WriteDecision {
  bool write = false;
  std::optional<WallTime> due;  // when stats are, or may be, to be written
};
WriteDecision DecideWrite(const StatusChange& change, const std::string& uid,
                          const std::optional<WallTime>& stats_written, WallTime now);

}  // namespace pliant::controller
