#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bounded.h"
#include "base/earliest.h"
#include "operator/planner/admission_order.h"
#include "operator/planner/alternation.h"
#include "operator/planner/decisions.h"
#include "operator/planner/estimates.h"
#include "operator/planner/forecast.h"
#include "operator/planner/model.h"
#include "operator/planner/node_requests.h"
#include "operator/planner/placement.h"
#include "operator/planner/plan.h"
#include "operator/planner/queue_report.h"
#include "operator/planner/quota_room.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {
namespace {

// Whether some job has its minimum without the protection but not with it.
bool CostsAMinimum(const Sharing& with, const Sharing& without) {
  return std::ranges::any_of(std::views::zip(with.shares, without.shares), [](const auto& pair) {
    const auto& [protected_share, share] = pair;
    return share.standing == AdmissionState::kAdmitted &&
           protected_share.standing != AdmissionState::kAdmitted;
  });
}

bool AnyJobHas(const Model& model, std::optional<LearnerCount> Job::* size) {
  return std::ranges::any_of(model.jobs, [&](const Job& job) { return (job.*size).has_value(); });
}

// The fair sharing, changed so that it leaves protected jobs alone; nullopt if there are no such
// jobs.
std::optional<Sharing> ShareWithProtection(const Model& model, const Policy& policy,
                                           const Sharing& fair) {
  std::optional<Sharing> fresh;
  if (AnyJobHas(model, &Job::protected_size)) {
    fresh.emplace(ShareOut(model, policy, Protection::kFresh));
  }
  if (AnyJobHas(model, &Job::frozen_size)) {
    Sharing frozen = ShareOut(model, policy, Protection::kFreshAndFrozen);
    if (!CostsAMinimum(frozen, fresh ? *fresh : fair)) return frozen;
  }
  return fresh;
}

// The pools that objects define or name, by name.
std::vector<PoolScope> ScopesOf(const ClusterSnapshot& snapshot) {
  std::map<std::string_view, PoolScope> scopes;
  for (const PoolView& pool : snapshot.pools) scopes[pool.name] = {.pool = pool};
  const auto name = [&](const std::string& pool) {
    if (scopes.contains(pool)) return;
    scopes[pool] = {.pool = {.name = pool}, .exists = pool == kBuiltInPool};
  };
  for (const NodeView& node : snapshot.nodes) {
    if (!node.pool.empty()) name(node.pool);
  }
  for (const QueueView& queue : snapshot.queues) name(queue.pool);
  for (const JobView& job : snapshot.jobs) name(job.pool);
  std::vector<PoolScope> sorted;
  for (auto& [key, scope] : scopes) sorted.push_back(std::move(scope));
  return sorted;
}

// The budgets of the pool's resource, without what pools of the same resource got before this one
// in this plan, and hold that come after it.
std::vector<GpuBudget> BudgetsOf(const ClusterSnapshot& snapshot, const Plan& plan,
                                 std::span<const PoolScope> scopes, const PoolView& pool) {
  std::vector<GpuBudget> budgets;
  std::ranges::copy_if(snapshot.budgets, std::back_inserter(budgets),
                       [&](const GpuBudget& budget) { return budget.resource == pool.resource; });
  if (scopes.size() == 1 || budgets.empty()) return budgets;
  const auto take = [&](const std::string& name_space, std::int64_t gpus) {
    const auto at = std::ranges::find(budgets, name_space, &GpuBudget::name_space);
    if (at != budgets.end()) at->gpus = std::max<std::int64_t>(at->gpus - gpus, 0);
  };
  std::set<std::string_view> others;
  for (const PoolScope& scope : scopes) {
    const bool takes = scope.pool.name != pool.name && scope.pool.resource == pool.resource;
    if (takes) others.insert(scope.pool.name);
  }
  std::map<JobKey, LearnerCount> decided;
  for (const Decision& decision : plan.decisions) decided[decision.job] = decision.to;
  for (const JobView& job : snapshot.jobs) {
    if (!others.contains(job.pool)) continue;
    const auto at = decided.find(job.key);
    const std::int64_t learners =
        at != decided.end() ? at->second : static_cast<std::int64_t>(job.learners.size());
    take(job.key.name_space, learners * job.needs.resources.gpus);
  }
  return budgets;
}

PoolShare ShareOf(const Model& model, const std::vector<QueueShare>& queues,
                  const NodeRequests& requests) {
  PoolShare share{.pool = model.pool.name,
                  .exists = model.pool_exists,
                  .capacity = model.capacity_gpus,
                  .requested = requests.gpus};
  for (const Node& node : model.nodes) {
    if (node.view == nullptr) continue;
    ++share.nodes;
    share.foreign =
        BoundedSum(share.foreign, std::min(node.view->foreign.gpus, node.view->allocatable.gpus));
  }
  for (const QueueShare& queue : queues) share.allocated += queue.allocated;
  return share;
}

// Adds what the plan says on one pool.
void PlanPool(const ClusterSnapshot& snapshot, const PoolScope& scope, const Policy& policy,
              FitMemory& memory, Plan& plan) {
  const Model model = MakeModel(snapshot, scope, policy, memory);
  const Sharing shared = ShareOut(model, policy, Protection::kNobody);
  const std::optional<Sharing> present =
      PresentIfPlansAlternate({model, scope, policy, memory}, shared);
  const Sharing& fair = present ? *present : shared;
  // Present sizes change no job, protected or not.
  const std::optional<Sharing> with_protection =
      present ? std::nullopt : ShareWithProtection(model, policy, fair);
  const Sharing& given = with_protection ? *with_protection : fair;
  const Assignment placed = Place(model, given);
  std::vector<std::optional<WallTime>> ends;
  std::vector<std::optional<WallTime>> starts;
  if (MayKnowEnds(model)) {
    std::vector<JobIndex> waiting = JobsInTurn(model, given);
    std::erase_if(waiting, [&](JobIndex job) { return !WaitsInQueue(given.shares[job].standing); });
    ends = ForecastEnds(model, given, waiting);
    starts = EstimateStarts(model, given, ends, waiting);
  }
  NodeRequests requests = RequestNodes(model, policy, fair, placed);

  std::ranges::move(DecisionsOf({.model = model,
                                 .fair = fair,
                                 .given = given,
                                 .placed = placed,
                                 .ends = ends,
                                 .starts = starts,
                                 .nodes = requests.by_job}),
                    std::back_inserter(plan.decisions));
  std::vector<QueueShare> queues = ReportQueues(model, given);
  plan.pools.push_back(ShareOf(model, queues, requests));
  plan.pools.back().yielded = YieldedGpus(model, placed);
  std::ranges::move(queues, std::back_inserter(plan.queues));
  plan.capacity_gpus = BoundedSum(plan.capacity_gpus, model.capacity_gpus);
  KeepEarliest(model.again_at, plan.again_at);
  KeepEarliest(given.again_at, plan.again_at);
  KeepEarliest(requests.again_at, plan.again_at);
}

}  // namespace

Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy) {
  FitMemory none;
  return MakePlan(snapshot, policy, none);
}

Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy, FitMemory& memory) {
  memory.BeginPlan();
  Plan plan;
  plan.decisions.reserve(snapshot.jobs.size());
  std::vector<PoolScope> scopes = ScopesOf(snapshot);
  for (PoolScope& scope : scopes) {
    scope.budgets = BudgetsOf(snapshot, plan, scopes, scope.pool);
    PlanPool(snapshot, scope, policy, memory, plan);
  }
  if (scopes.size() > 1) {
    std::ranges::sort(plan.decisions, {}, &Decision::job);
    std::ranges::sort(plan.queues, {}, &QueueShare::queue);
  }
  AwaitRoomInQuotas(snapshot, plan);
  plan.gates_open = OpenGates(snapshot, plan.decisions);
  return plan;
}

}  // namespace pliant::planner
