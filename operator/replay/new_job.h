#pragma once

#include <string>

#include "base/result.h"
#include "operator/api/elastic_training_job.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::replay {

// The ElasticTrainingJob of a YAML text as a job that was submitted at the time of the snapshot and
// waits. kInvalid names the field for which the API server or the operator would refuse it.
Result<planner::JobView> NewJob(const std::string& yaml, const api::JobSettings& settings,
                                const planner::ClusterSnapshot& snapshot);

}  // namespace pliant::replay
