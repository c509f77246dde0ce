#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operator/api/gpu_pool.h"
#include "operator/api/training_queue.h"
#include "operator/controller/lifecycle/object_event.h"

// The events for the owners of queues and pools. Pure.
namespace pliant::controller {

// The events that follow from a change of status, and from it alone: a restart of the operator
// repeats none.
std::vector<ObjectEvent> EventsOf(const api::TrainingQueueStatus& before,
                                  const api::TrainingQueueStatus& after);
std::vector<ObjectEvent> EventsOf(const api::GpuPoolStatus& before,
                                  const api::GpuPoolStatus& after);

// GPUs that a job lost because they are guaranteed to another queue.
struct Reclaimed {
  std::string job;  // "team-a/resnet"
  std::int64_t gpus = 0;
  std::string from;  // queue of that job
  std::string by;    // queue that has the guarantee
  std::string why;   // the sentence in the job's status
};
// For both queues; `is_loser`: for `from`.
ObjectEvent EventOf(const Reclaimed& reclaimed, bool is_loser);

}  // namespace pliant::controller
