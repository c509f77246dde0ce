#pragma once

#include "operator/api/time.h"

namespace pliant::controller {

// How a job's coordinator is replaced: less and less quickly.
struct CoordinatorRetry {
  int tries = 0;             // since one could be reached
  api::WallTime not_before;  // the next
  bool operator==(const CoordinatorRetry&) const = default;
};

}  // namespace pliant::controller
