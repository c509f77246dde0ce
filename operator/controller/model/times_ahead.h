#pragma once

#include <map>

#include "operator/api/elastic_training_job.h"

namespace pliant::controller {

// Times in status that were in the future when first read, such as those of a leader whose clock
// was wrong. Maps each to the time of that first reading.
using TimesAhead = std::map<api::WallTime, api::WallTime>;

void ObserveTimes(const api::JobStatus& status, api::WallTime now, TimesAhead& times);

}  // namespace pliant::controller
