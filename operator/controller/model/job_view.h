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

namespace pliant::controller {

using api::WallTime;

// What is heard of the job's coordinator.
struct CoordinatorView {
  std::shared_ptr<const Progress> progress;  // the newest of the present term; null: none yet
  std::optional<WallTime> silent_since;      // does not answer since then; nothing: it does
  bool reachable = false;                    // answered the last call
};

// All that is known of one job at an instant. There may be thousands that wait: what others keep
// too is shared with them, and what only a job that runs has takes a pointer.
struct JobView {
  std::shared_ptr<const api::ElasticTrainingJob> job;  // never null
  // Why its newest version is not understood: it stays what it was before. Empty: it is understood.
  std::string unreadable;
  // Of one learner, by the newest template that could be read: those that live were made of that
  // one, or of an earlier one. Null: there was none.
  std::shared_ptr<const planner::PodNeeds> needs;
  std::vector<api::Pod> learners;               // by number, ended ones too
  std::vector<api::Pod> coordinators;           // by term
  std::shared_ptr<const api::Service> service;  // null: there is none
  CoordinatorView coordinator;
  JobSoftState soft_state;
  // When what was written of a pod or the Service is overdue: nothing else tells of that.
  std::optional<WallTime> overdue_at;
  // Names of pods that the store has not shown for long as they were written: the server is to be
  // asked.
  std::vector<std::string> overdue_pods;
};

bool IsGated(const api::Pod& learner);
// The answer for the job's template as it is now; null: that has not been checked. It points into
// `view`.
const TemplateCheck* CurrentTemplateCheck(const JobView& view);
// Whether its program runs.
bool IsRunning(const api::Pod& learner);
// Whether it also has spoken to the job's coordinator, and so may be a part of the training.
bool HasStarted(const JobView& view, const api::Pod& learner);
// Where it runs or is to run; "" if that is not known.
std::string NodeOf(const api::Pod& pod);
// Of times at which something is to be looked at again; nothing: never.
void KeepEarliest(const std::optional<WallTime>& time, std::optional<WallTime>& earliest);
// On how many learners its program wants to train; nothing: on as many as there are.
std::optional<int> LearnersAsked(const JobView& view);
bool HasLiveLearners(const JobView& view);
// Of one learner of its present template: as the API server admits it if that is known, else as
// the template says. Null: neither is known.
std::shared_ptr<const planner::PodNeeds> NeedsOfLearner(const JobView& view);
// Whether only the template is known of what its learners will need.
bool NeedsAreGuessed(const JobView& view);
// Whether it was admitted, with the template that it has now.
bool IsAdmitted(const api::JobSpec& spec, const api::JobStatus& status);
// When it was, what the job's status tells; never later than when it was read first.
std::optional<WallTime> TimeOf(const JobView& view, const std::optional<WallTime>& in_status);
// The last step that is known to be committed.
std::int64_t CommittedStep(const JobView& view);

}  // namespace pliant::controller
