#pragma once

#include <optional>
#include <vector>

#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// What is to be done about a job's coordinator.
struct CoordinatorOutcome {
  std::int64_t term = 0;  // the status' coordinatorTerm to be, written before the actions
  std::vector<Action> actions;
  CoordinatorRetry retry;              // remembered with the actions
  std::optional<WallTime> look_again;  // when time alone may change the answer
};

// The coordinator of the newest term that is alive and whose certificate names the job, if there is
// one.
const api::Pod* CurrentCoordinator(const JobView& view);
// Whether the newest is alive, but was made by an operator of version 1 of the credentials
// (kCredentialsVersion): it cannot prove which job it is of, so it is told nothing.
bool HasUnprovenCoordinator(const JobView& view);

// One coordinator while it is `needed`, none otherwise. One that is gone, or that does not answer
// though its program runs, is replaced by one of a higher term, less and less quickly; one that
// cannot prove which job it is of is replaced at once. The learners train on meanwhile.
CoordinatorOutcome DecideCoordinator(const JobView& view, bool needed, WallTime now);

}  // namespace pliant::controller
