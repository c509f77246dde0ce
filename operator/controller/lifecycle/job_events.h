#pragma once

#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/lifecycle/object_event.h"
#include "operator/controller/model/node_history.h"

namespace pliant::controller {

ObjectEvent EventOf(const Eviction& eviction);

// The events for the job's owner that follow from a change of status. They follow from the status
// alone, so a restart of the operator repeats none.
std::vector<ObjectEvent> EventsOf(const api::JobStatus& before, const api::JobStatus& after);

}  // namespace pliant::controller
