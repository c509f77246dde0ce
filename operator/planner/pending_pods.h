#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string_view>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/plan.h"

// Pods of other workloads for which the scheduler finds no node take part in the sharing: each is a
// job of one learner.
namespace pliant::planner {

// The queue of pending pods of other workloads. It is guaranteed all that they ask for, and evicts
// no job. Plans do not show it.
inline constexpr std::string_view kQueueOfPods = "";

// Returns those that one of the pool's `nodes` may take, and whose turn it is, the oldest first.
// `again_at`: when the passing of time alone changes them.
std::deque<JobView> JobsOfPendingPods(const ClusterSnapshot& snapshot, const PoolView& pool,
                                      const Policy& policy, std::span<const NodeView* const> nodes,
                                      FitMemory& memory, std::optional<WallTime>& again_at);
QueueView QueueOfPendingPods(const PoolView& pool, const std::deque<JobView>& pods);

}  // namespace pliant::planner
