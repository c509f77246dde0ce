#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "operator/controller/lifecycle/conditions.h"
#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// What the job's result will depend on. logicalShards, if absent, is the largest power of two that
// divides the global batch, at most the next one from 4 · maxLearners · gpusPerLearner on.
// kInvalid when the two do not fit together.
Result<api::FrozenTraining> FreezeTraining(const api::JobSpec& spec);

// What it was frozen to before stays, whatever the job may ask for since.
Result<api::FrozenTraining> FrozenOrNew(const api::ElasticTrainingJob& job);

// Whether a job that is not suspended may be given learners.
struct AdmissionOutcome {
  std::optional<Verdict> verdict;               // of condition Admitted; nothing: not known yet
  std::optional<api::FrozenTraining> training;  // if it is admitted
  std::vector<Action> actions;
  std::optional<WallTime> look_again;
};
AdmissionOutcome DecideAdmission(const JobView& view, WallTime now);

// With what a job trains that is admitted, or is as soon as its status can be written: both go
// there at once. Nothing: it is not.
std::optional<api::FrozenTraining> TrainingOf(const JobView& view);

}  // namespace pliant::controller
