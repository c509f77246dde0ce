#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/model/progress.h"
#include "operator/planner/speed_curve.h"

namespace pliant::controller {

// Knowledge of a job's speed. The SpeedBook changes it.
struct KnownSpeed {
  planner::SpeedCurve curve;                 // empty: nothing
  double alone_seconds_per_step = 0;         // with one learner, if the curve is not empty
  std::int64_t batch = 0;                    // samples of that step
  std::vector<api::MeasuredSpeed> measured;  // for the job's status
  bool status_was_read = false;
  std::shared_ptr<const Progress> learned_from;  // the newest report that was looked at
  // The curve was made from these, and is made again only when one of them changes.
  std::uint64_t version = 0;
  int max_learners = 0;
  std::int64_t gpus_of_node = 0;
  bool operator==(const KnownSpeed&) const = default;
};

}  // namespace pliant::controller
