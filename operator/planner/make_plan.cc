#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "operator/planner/model.h"
#include "operator/planner/placement.h"
#include "operator/planner/plan.h"
#include "operator/planner/queue_report.h"
#include "operator/planner/reasons.h"
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

// Sorts the learners of one job into `keep`, `drop` and `create`.
void SortLearners(const Model& model, JobIndex index, const Assignment& placed,
                  Decision& decision) {
  const Job& job = model.jobs[index];
  std::map<NodeIndex, LearnerCount> room;
  for (const Claim& claim : placed.ClaimsOf(index)) room[claim.node] = claim.learners;
  std::vector<const LearnerView*> kept;
  for (const LearnerView* learner : job.held) {
    LearnerCount& left = room[model.NodeNamed(learner->node)];
    if (left == 0) continue;
    --left;
    kept.push_back(learner);
    decision.keep.push_back(learner->name);
  }
  for (const LearnerView& learner : job.view->learners) {
    if (learner.state == LearnerState::kLeaving || std::ranges::contains(kept, &learner)) continue;
    decision.drop.push_back(learner.name);
  }
  for (const auto& [node, learners] : room) {
    for (LearnerCount count = 0; count < learners; ++count) {
      decision.create.push_back({std::string(model.nodes[node].name)});
    }
  }
}

}  // namespace

Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy) {
  FitMemory none;
  return MakePlan(snapshot, policy, none);
}

Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy, FitMemory& memory) {
  const Model model = MakeModel(snapshot, policy, memory);
  const Sharing fair = ShareOut(model, policy, Protection::kNobody);
  const std::optional<Sharing> with_protection = ShareWithProtection(model, policy, fair);
  const Sharing& given = with_protection ? *with_protection : fair;
  const Assignment placed = Place(model, given);

  std::vector<std::int64_t> priorities(model.queues.size());
  for (const auto& [job, share] : std::views::zip(model.jobs, given.shares)) {
    if (share.learners > 0) priorities[job.queue] += job.view->priority;
  }

  Plan plan{.queues = ReportQueues(model, given),
            .capacity_gpus = model.capacity_gpus,
            .again_at = model.again_at};
  if (given.again_at && (!plan.again_at || *given.again_at < *plan.again_at)) {
    plan.again_at = given.again_at;
  }
  plan.decisions.reserve(model.jobs.size());
  for (JobIndex index = 0; index < std::ssize(model.jobs); ++index) {
    const Job& job = model.jobs[index];
    Decision decision{.job = job.view->key,
                      .from = job.present,
                      .to = placed.LearnersOf(index),
                      .entitled_gpus = fair.shares[index].entitled_gpus,
                      .entitlement = fair.shares[index].entitled_learners,
                      .demand = job.active ? job.demand : 0,
                      .cap = job.cap};
    SortLearners(model, index, placed, decision);
    decision.reason = WhyThisSize({.model = model,
                                   .job = index,
                                   .fair = fair.shares[index],
                                   .given = given.shares[index],
                                   .queue = given.queues[job.queue],
                                   .priorities = priorities[job.queue]});
    plan.decisions.push_back(std::move(decision));
  }
  plan.gates_open = OpenGates(snapshot, plan.decisions);
  return plan;
}

}  // namespace pliant::planner
