#pragma once

#include <optional>

#include "operator/api/time.h"
#include "operator/kube/work_queue.h"

namespace pliant::controller {

// Has the job looked at when it is time; never if there is none.
void LookAgainAt(const std::optional<api::WallTime>& at, api::WallTime now,
                 const kube::NamespacedName& job, kube::WorkQueue& queue);

}  // namespace pliant::controller
