#pragma once

#include <optional>

#include "operator/api/time.h"
#include "operator/kube/work_queue.h"

namespace pliant::controller {

// Requeues the job for time `at`; nullopt: never.
void LookAgainAt(const std::optional<api::WallTime>& at, api::WallTime now,
                 const kube::NamespacedName& job, kube::WorkQueue& queue);

}  // namespace pliant::controller
