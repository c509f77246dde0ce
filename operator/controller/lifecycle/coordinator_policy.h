#pragma once

#include <optional>
#include <vector>

#include "operator/controller/model/actions.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// The decision about a job's coordinator.
struct CoordinatorOutcome {
  std::int64_t term = 0;  // the new status.coordinatorTerm, written before the actions
  std::vector<Action> actions;
  CoordinatorRetry retry;              // to be stored with the actions
  std::optional<WallTime> look_again;  // when time alone may change the answer
};

// The live coordinator of the newest term; null if there is none.
const api::Pod* CurrentCoordinator(const JobView& view);

// Keeps one coordinator while it is `needed`, none otherwise. A coordinator that is gone, or that
// does not answer though its program runs, is replaced by one of a higher term, with back-off. The
// learners continue to train meanwhile.
CoordinatorOutcome DecideCoordinator(const JobView& view, bool needed, WallTime now);

}  // namespace pliant::controller
