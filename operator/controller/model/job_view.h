#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/controller/model/job_soft_state.h"
#include "operator/controller/model/progress.h"
#include "operator/controller/model/queue_book.h"

namespace pliant::controller {

using api::WallTime;

// The reports of the job's coordinator, and whether it answers.
struct CoordinatorView {
  std::shared_ptr<const Progress> progress;  // the newest of the current term; null: none yet
  std::optional<WallTime> silent_since;      // has not answered since then; nullopt: it answers
  bool reachable = false;                    // answered the last call
  // Since when it has reported a plan of a later leader, and takes none of ours; nullopt: it does
  // not. Only a leader that still leads can replace it.
  std::optional<WallTime> refused_since;
};

// All that is known of one job at an instant. Thousands of jobs may wait, so a view is small: data
// that is also held elsewhere is shared, and data that only a running job has costs one pointer.
struct JobView {
  // Never null. Where its spec asks for more than its queue and pool allow, it has what is allowed.
  std::shared_ptr<const api::ElasticTrainingJob> job;
  QueueMembership membership;
  // Why the job's newest version cannot be understood; `job` is then the version before, if that
  // could be. Empty: it is understood.
  std::string unreadable;
  // The needs of one learner, by the newest template that could be read: live learners were made
  // from that one or from an earlier one. Null: no template could be read.
  std::shared_ptr<const planner::PodNeeds> needs;
  std::vector<api::Pod> learners;               // by number, including ended ones
  std::vector<api::Pod> coordinators;           // by term
  std::shared_ptr<const api::Service> service;  // null: there is none
  CoordinatorView coordinator;
  JobSoftState soft_state;
  // When a write of a pod or the Service becomes overdue in the stores. No event announces that.
  std::optional<WallTime> overdue_at;
  // Names of pods that the store has long failed to show as they were written: the API server has
  // to be asked about them.
  std::vector<std::string> overdue_pods;
};

bool IsGated(const api::Pod& learner);
// The check of the job's current template; null: it has not been checked. Points into `view`.
const TemplateCheck* CurrentTemplateCheck(const JobView& view);
// Whether its program runs.
bool IsRunning(const api::Pod& learner);
// Whether it also has contacted the job's coordinator, and so may take part in the training.
bool HasStarted(const JobView& view, const api::Pod& learner);
// The node where it runs or will run; "": not known.
std::string NodeOf(const api::Pod& pod);
bool HasLiveLearners(const JobView& view);
// Whether the job is to hold no GPU: its owner suspends it, or has deleted it. A finalizer may keep
// a deleted job for any time.
bool IsSuspended(const JobView& view);
// The needs of one learner of the current template: as the API server admits it if that is known,
// else as the template says. Null: neither is known.
std::shared_ptr<const planner::PodNeeds> NeedsOfLearner(const JobView& view);
// A job as the planner sees it, as far as its spec says. `needs`: of one learner, whose GPUs the
// spec alone says and bounds; null: not known.
planner::JobView PlannedFrom(const api::JobSpec& spec, const planner::PodNeeds* needs);
// Whether the needs of its learners are known from the template only.
bool NeedsAreGuessed(const JobView& view);
// Whether the job was admitted with its current template.
bool IsAdmitted(const api::JobSpec& spec, const api::JobStatus& status);
// The time `in_status`, but never later than when it was first read.
std::optional<WallTime> TimeOf(const JobView& view, const std::optional<WallTime>& in_status);
// The minimum that counts, as the planner defines it.
int CountedMinimum(const api::ElasticTrainingJob& job);
// The last step that is known to be committed.
std::int64_t CommittedStep(const JobView& view);

}  // namespace pliant::controller
