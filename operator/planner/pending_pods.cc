#include "operator/planner/pending_pods.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/planner/feasibility.h"
#include "operator/planner/on_and_off.h"

namespace pliant::planner {
namespace {

// Bounds the time of a plan.
constexpr std::size_t kMaxPendingPods = 256;

// Thousands of pods may fit nowhere: their needs are not copied.
bool MayTake(const PoolView& pool, const PendingPod& pod, std::span<const NodeView* const> nodes,
             FitMemory& memory) {
  if (!memory.SuitSome(pool.name, pod.asks, nodes)) return false;
  const PodNeeds& needs = pod.asks.OrNone();
  Resources resources = needs.resources;
  resources.gpus = pod.gpus;
  const std::vector<Obstacle> looks = memory.Compare(pool.name, needs, nodes);
  return std::ranges::any_of(std::views::zip(nodes, looks), [&](const auto& each) {
    const auto& [node, obstacle] = each;
    return obstacle == Obstacle::kNone && node != nullptr && MayStart(*node) &&
           Fits(resources, node->allocatable - node->foreign);
  });
}

}  // namespace

std::deque<JobView> JobsOfPendingPods(const ClusterSnapshot& snapshot, const PoolView& pool,
                                      const Policy& policy, std::span<const NodeView* const> nodes,
                                      FitMemory& memory, std::optional<WallTime>& again_at) {
  std::vector<const PendingPod*> pods;
  for (const PendingPod& pod : snapshot.pending) {
    if (pod.resource == pool.resource && pod.gpus > 0) pods.push_back(&pod);
  }
  std::ranges::sort(pods, {}, [](const PendingPod* pod) {
    return std::tie(pod->since, pod->name_space, pod->name);
  });
  std::deque<JobView> jobs;
  // Pods of one namespace that ask for as much have their turns together, from the oldest one on:
  // otherwise a controller that makes one after another would have a turn all the time.
  std::map<std::pair<std::string_view, std::int64_t>, WallTime> kinds;
  for (const PendingPod* pod : pods) {
    if (jobs.size() >= kMaxPendingPods) break;
    const WallTime begin =
        kinds.try_emplace({pod->name_space, pod->gpus}, pod->since).first->second;
    const bool is_on =
        pod->since <= snapshot.now &&
        IsOnEverRarer(begin, policy.yield_for, policy.yield_pause, snapshot.now, again_at);
    if (!is_on) continue;
    if (!MayTake(pool, *pod, nodes, memory)) continue;
    PodNeeds needs = pod->asks.OrNone();
    needs.resources.gpus = pod->gpus;
    // No namespace: budgets are for jobs.
    jobs.push_back(
        {.key = {.name_space = "", .name = pod->name_space + "/" + pod->name, .uid = ""},
         .queue = std::string(kQueueOfPods),
         .pool = pool.name,
         .needs = std::move(needs),
         .training = {.logical_shards = static_cast<int>(std::min<std::int64_t>(pod->gpus, 1024)),
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
