#pragma once

#include "operator/api/gpu_pool.h"
#include "operator/api/training_queue.h"
#include "operator/controller/model/queue_book.h"
#include "operator/planner/plan.h"

// The statuses of queues and pools, from a plan and its input. Pure.
namespace pliant::controller {

// The types of their conditions.
inline constexpr std::string_view kConditionActive = "Active";
inline constexpr std::string_view kConditionGuaranteeMet = "GuaranteeMet";
inline constexpr std::string_view kConditionReady = "Ready";
inline constexpr std::string_view kConditionOverlapping = "Overlapping";

struct PlannedCluster {
  const planner::ClusterSnapshot& snapshot;
  const planner::Plan& plan;
};

api::TrainingQueueStatus StatusOf(const api::TrainingQueue& queue, const PlannedCluster& cluster,
                                  api::WallTime now);
api::GpuPoolStatus StatusOf(const api::GpuPool& pool, const QueueBook& book,
                            const PlannedCluster& cluster, api::WallTime now);

}  // namespace pliant::controller
