#pragma once

#include "operator/controller/actions/action_runner.h"
#include "operator/controller/model/job_soft_state.h"

namespace pliant::controller {

// Records the result of a batch in its job's soft state. `reported_before`: the last report before
// this write of status. `unanswered_before`: the server did not answer the try before.
void RecordResult(const Batch& batch, const LastReported& reported_before, bool unanswered_before,
                  const BatchResult& result, api::WallTime now, JobSoftState& state);

}  // namespace pliant::controller
