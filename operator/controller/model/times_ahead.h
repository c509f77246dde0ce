#pragma once

#include <map>

#include "operator/api/elastic_training_job.h"

namespace pliant::controller {

// Times in status that lay ahead when they were read first, as those of a leader whose clock was
// wrong: by what is written, when that was.
using TimesAhead = std::map<api::WallTime, api::WallTime>;

void ObserveTimes(const api::JobStatus& status, api::WallTime now, TimesAhead& times);

}  // namespace pliant::controller
