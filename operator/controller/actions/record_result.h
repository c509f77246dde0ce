#pragma once

#include "operator/controller/actions/action_runner.h"
#include "operator/controller/model/job_soft_state.h"

namespace pliant::controller {

// Takes what came of a batch over into what is known of its job. `reported_before`: before its
// status was to be written. `unanswered_before`: the server did not answer the try before.
void RecordResult(const Batch& batch, const LastReported& reported_before, bool unanswered_before,
                  const BatchResult& result, api::WallTime now, JobSoftState& state);

}  // namespace pliant::controller
