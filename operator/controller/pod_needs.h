#pragma once

#include <string>

#include "base/result.h"
#include "operator/api/elastic_training_job.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// What a learner of the job asks of its node, as far as the planner understands a pod template.
// kInvalid names the field of the template that is no such thing.
Result<planner::PodNeeds> NeedsOfLearner(const api::JobSpec& spec, const std::string& gpu_resource);

}  // namespace pliant::controller
