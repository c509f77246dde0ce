#pragma once

#include <optional>
#include <vector>

#include "operator/controller/actions.h"
#include "operator/controller/job_view.h"

namespace pliant::controller {

// What is to be done about a job's coordinator.
struct CoordinatorOutcome {
  std::int64_t term = 0;  // the status' coordinatorTerm to be, written before the actions
  std::vector<Action> actions;
  // Remembered with the actions.
  int tries = 0;
  WallTime not_before;
  std::optional<WallTime> look_again;  // when time alone may change the answer
};

// The coordinator of the newest term that is alive, if there is one.
const api::Pod* CurrentCoordinator(const JobView& view);

// One coordinator while it is `needed`, none otherwise. One that is gone, or that does not answer
// though its program runs, is replaced by one of a higher term, less and less quickly.
CoordinatorOutcome DecideCoordinator(const JobView& view, bool needed, WallTime now);

}  // namespace pliant::controller
