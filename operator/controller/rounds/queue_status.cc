#include "operator/controller/rounds/queue_status.h"

#include <algorithm>
#include <string>

#include "base/format.h"
#include "base/utf8.h"
#include "operator/controller/lifecycle/conditions.h"

namespace pliant::controller {
namespace {

using enum api::ConditionStatus;

template <typename Item, typename Name>
Item Named(const std::vector<Item>& items, const std::string& name, Name Item::* field) {
  const auto found = std::ranges::find(items, name, field);
  return found == items.end() ? Item{} : *found;
}

Verdict NotUnderstood(const std::string& why, bool has_former_spec) {
  return {kFalse, "NotUnderstood",
          why + (has_former_spec ? "; until this is corrected the previous spec applies"
                                 : "; until this is corrected it has no effect")};
}

Verdict ActiveVerdict(const api::TrainingQueue& queue, const PlannedCluster& cluster) {
  const bool is_planned =
      std::ranges::contains(cluster.snapshot.queues, queue.meta.name, &planner::QueueView::name);
  if (!queue.unreadable.empty()) return NotUnderstood(queue.unreadable, is_planned);
  const std::string& pool = queue.spec.pool;
  if (!std::ranges::contains(cluster.snapshot.pools, pool, &planner::PoolView::name)) {
    return {
        kFalse, "PoolMissing",
        Format("spec.pool: there is no GpuPool {}; create it, or create a queue of another pool",
               pool)};
  }
  switch (queue.spec.stop) {
    case api::QueueStop::kNone:
      return {kTrue, "Active", "jobs are admitted"};
    case api::QueueStop::kHold:
      return {kFalse, "Held", "spec.stop is Hold: no job is admitted, running ones continue"};
    case api::QueueStop::kDrain:
      return {kFalse, "Drained", "spec.stop is Drain: its jobs are checkpointed and wait"};
  }
  return {kTrue, "Active", "jobs are admitted"};
}

Verdict GuaranteeVerdict(const api::TrainingQueue& queue, const planner::QueueShare& share,
                         const PlannedCluster& cluster) {
  const std::string& pool = queue.spec.pool;
  std::int64_t guaranteed = 0;
  for (const planner::QueueView& each : cluster.snapshot.queues) {
    if (each.pool == pool) guaranteed += each.guaranteed_gpus;
  }
  const std::int64_t capacity =
      Named(cluster.plan.pools, pool, &planner::PoolShare::pool).capacity -
      Named(cluster.snapshot.pools, pool, &planner::PoolView::name).reserved_gpus;
  if (guaranteed > capacity) {
    return {kFalse, "GuaranteesBeyondCapacity",
            Format("spec.guaranteed: the queues of pool {} are guaranteed {} GPUs together, and it "
                   "has {}; lower some of them, or add nodes",
                   pool, guaranteed, std::max<std::int64_t>(capacity, 0))};
  }
  if (share.state == planner::QueueState::kBelowGuarantee) {
    return {kFalse, "BelowGuarantee", share.sentence};
  }
  return {kTrue, "Met", "its jobs have what is guaranteed, as far as they can use it"};
}

}  // namespace

api::TrainingQueueStatus StatusOf(const api::TrainingQueue& queue, const PlannedCluster& cluster,
                                  api::WallTime now) {
  const planner::QueueShare share =
      Named(cluster.plan.queues, queue.meta.name, &planner::QueueShare::queue);
  api::TrainingQueueStatus status{.observed_generation = queue.meta.generation,
                                  .demand = share.demand,
                                  .entitled = share.entitled,
                                  .allocated = share.allocated,
                                  .borrowed = share.borrowed,
                                  .lent = share.lent,
                                  .waiting = share.waiting,
                                  .running = share.running,
                                  .reason = CutAtCharacter(share.sentence, api::kMaxReasonBytes),
                                  .conditions = queue.status.conditions};
  SetCondition(status.conditions, kConditionActive, ActiveVerdict(queue, cluster),
               queue.meta.generation, now);
  if (queue.spec.guaranteed > 0) {
    SetCondition(status.conditions, kConditionGuaranteeMet, GuaranteeVerdict(queue, share, cluster),
                 queue.meta.generation, now);
  } else {
    std::erase_if(status.conditions, [](const api::Condition& condition) {
      return condition.type == kConditionGuaranteeMet;
    });
  }
  return status;
}

api::GpuPoolStatus StatusOf(const api::GpuPool& pool, const QueueBook& book,
                            const PlannedCluster& cluster, api::WallTime now) {
  const planner::PoolShare share =
      Named(cluster.plan.pools, pool.meta.name, &planner::PoolShare::pool);
  api::GpuPoolStatus status{.observed_generation = pool.meta.generation,
                            .nodes = share.nodes,
                            .capacity_gpus = share.capacity,
                            .allocated_gpus = share.allocated,
                            .foreign_gpus = share.foreign,
                            .requested_gpus = share.requested,
                            .yielded_gpus = share.yielded,
                            .conditions = pool.status.conditions};
  Verdict ready{kTrue, "NodesFound", "the pool has nodes with GPUs"};
  if (!pool.unreadable.empty()) {
    ready = NotUnderstood(
        pool.unreadable,
        std::ranges::contains(cluster.snapshot.pools, pool.meta.name, &planner::PoolView::name));
  } else if (share.nodes == 0) {
    ready = {kFalse, "NoNodes", "spec.nodeSelector: no node with GPUs belongs to the pool"};
  }
  const auto contested = std::ranges::count_if(
      cluster.snapshot.nodes,
      [&](const planner::NodeView& node) { return book.IsContested(pool.meta.name, node.labels); });
  const Verdict overlapping =
      contested == 0
          ? Verdict{kFalse, "Disjoint", "no node of the pool belongs to an older one"}
          : Verdict{kTrue, "NodesOfOlderPools",
                    Format("spec.nodeSelector also matches {} of older pools, to which {} "
                           "belong{}; make the selectors disjoint",
                           Counted(contested, "node"), contested == 1 ? "it" : "they",
                           contested == 1 ? "s" : "")};
  SetCondition(status.conditions, kConditionReady, ready, pool.meta.generation, now);
  SetCondition(status.conditions, kConditionOverlapping, overlapping, pool.meta.generation, now);
  return status;
}

}  // namespace pliant::controller
