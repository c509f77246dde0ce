#include "operator/planner/pending_pods.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "operator/planner/feasibility.h"
#include "operator/planner/on_and_off.h"

namespace pliant::planner {
namespace {

// Bounds the time of a plan.
constexpr std::size_t kMaxPendingPods = 256;

bool MayTake(const ClusterSnapshot& snapshot, const PoolView& pool, const PendingPod& pod) {
  return std::ranges::any_of(snapshot.nodes, [&](const NodeView& node) {
    return node.pool == pool.name && ObstacleOn(node, pod.needs) == Obstacle::kNone;
  });
}

}  // namespace

std::deque<JobView> JobsOfPendingPods(const ClusterSnapshot& snapshot, const PoolView& pool,
                                      const Policy& policy, std::optional<WallTime>& again_at) {
  std::vector<const PendingPod*> pods;
  for (const PendingPod& pod : snapshot.pending) {
    if (pod.resource == pool.resource && pod.needs.resources.gpus > 0) pods.push_back(&pod);
  }
  std::ranges::sort(pods, {}, [](const PendingPod* pod) {
    return std::tie(pod->since, pod->name_space, pod->name);
  });
  std::deque<JobView> jobs;
  for (const PendingPod* pod : pods) {
    if (jobs.size() >= kMaxPendingPods) break;
    const bool is_on =
        pod->since <= snapshot.now &&
        IsOn(pod->since, policy.yield_for, policy.yield_pause, snapshot.now, again_at);
    if (!is_on || !MayTake(snapshot, pool, *pod)) continue;
    // No namespace: budgets are for jobs.
    jobs.push_back({.key = {.name_space = "", .name = pod->name_space + "/" + pod->name, .uid = ""},
                    .queue = std::string(kQueueOfPods),
                    .pool = pool.name,
                    .needs = pod->needs,
                    .training = {.logical_shards = static_cast<int>(
                                     std::min<std::int64_t>(pod->needs.resources.gpus, 1024)),
                                 .reproducibility = Reproducibility::kStatistical},
                    .submitted = pod->since});
  }
  return jobs;
}

QueueView QueueOfPendingPods(const PoolView& pool, const std::deque<JobView>& pods) {
  QueueView queue{.name = std::string(kQueueOfPods), .pool = pool.name, .weight = 1};
  queue.policy = QueuePolicy::kFifo;
  queue.evicts = false;
  for (const JobView& pod : pods) queue.guaranteed_gpus += pod.needs.resources.gpus;
  return queue;
}

}  // namespace pliant::planner
