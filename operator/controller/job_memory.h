#pragma once

#include "operator/controller/job_view.h"

namespace pliant::controller {

// What is to be remembered of a job, given what is seen of it now: since when learners start, which
// nodes failed them, how many GPU seconds it got, since when it waits. Before planning, which asks
// for all of these.
JobMemory Remember(const JobView& view, WallTime now);

}  // namespace pliant::controller
