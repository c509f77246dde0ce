#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "operator/controller/lifecycle/conditions.h"
#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// The settings that the job's result depends on. logicalShards, if absent, is that of
// base/default_shards.h for maxLearners · gpusPerLearner ranks. kInvalid if they do not fit
// together.
Result<api::FrozenTraining> FreezeTraining(const api::JobSpec& spec);

// Settings that were frozen before stay, whatever the spec has asked for since.
Result<api::FrozenTraining> FrozenOrNew(const api::ElasticTrainingJob& job);

// Whether a job that is not suspended may get learners.
struct AdmissionOutcome {
  std::optional<Verdict> verdict;               // of condition Admitted; nullopt: not known yet
  std::optional<api::FrozenTraining> training;  // if it is admitted
  std::vector<Action> actions;
  std::optional<WallTime> look_again;
};
AdmissionOutcome DecideAdmission(const JobView& view, WallTime now);

// The frozen settings of a job that is admitted, or will be with the next write of its status,
// which contains both. nullopt: it is not.
std::optional<api::FrozenTraining> TrainingOf(const JobView& view);

// The same with the batch and the logical shards of the present epoch, for speeds and times: they
// grow with max_batch_size. A report that the job could not have is ignored.
std::optional<api::FrozenTraining> PresentTrainingOf(const JobView& view);

}  // namespace pliant::controller
