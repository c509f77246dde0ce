#pragma once

#include <optional>

#include "operator/controller/lifecycle/failure_policy.h"
#include "operator/controller/lifecycle/learner_policy.h"
#include "operator/controller/model/job_view.h"

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

struct StatusChange {
  const api::JobStatus& before;
  const api::JobStatus& after;
  // The plan's reason is the one that was told, if perhaps with other numbers: those of all jobs
  // change when one comes or goes.
  bool same_reason = false;
  // What was written of learnersAsked came back without it.
  bool learners_asked_dropped = false;
};
// Progress alone is written at most every 30 s, each job at moments of its own. What was attained
// alone is not written: it grows with the time. Nor is what is not kept: that would have no end.
struct WriteDecision {
  bool write = false;
  std::optional<WallTime> due;  // when there are figures to be written, or may be
};
WriteDecision DecideWrite(const StatusChange& change, const std::string& uid,
                          const std::optional<WallTime>& stats_written, WallTime now);

}  // namespace pliant::controller
