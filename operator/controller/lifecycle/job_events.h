#pragma once

#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/model/node_history.h"

namespace pliant::controller {

struct JobEvent {
  bool warning = false;
  std::string reason;  // CamelCase, of a fixed set
  std::string note;
  bool operator==(const JobEvent&) const = default;
};

JobEvent EventOf(const Eviction& eviction);

// The events for the job's owner that follow from a change of status. They follow from the status
// alone, so a restart of the operator repeats none.
std::vector<JobEvent> EventsOf(const api::JobStatus& before, const api::JobStatus& after);

}  // namespace pliant::controller
