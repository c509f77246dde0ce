#pragma once

#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"

namespace pliant::controller {

struct JobEvent {
  bool warning = false;
  std::string reason;  // CamelCase, of a fixed set
  std::string note;
  bool operator==(const JobEvent&) const = default;
};

// What a change of status tells the job's owner. Since it follows from the status alone, a restart
// of the operator tells nothing twice.
std::vector<JobEvent> EventsOf(const api::JobStatus& before, const api::JobStatus& after);

}  // namespace pliant::controller
