#pragma once

#include "operator/api/time.h"

namespace pliant::controller {

// Back-off between replacements of a job's coordinator.
struct CoordinatorRetry {
  int tries = 0;             // since a coordinator last took a plan
  api::WallTime not_before;  // earliest time of the next try
  bool operator==(const CoordinatorRetry&) const = default;
};

}  // namespace pliant::controller
