#include "operator/planner/quota_room.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace pliant::planner {

void AwaitRoomInQuotas(const ClusterSnapshot& snapshot, Plan& plan) {
  if (snapshot.budgets.empty()) return;
  struct Quota {
    std::int64_t gpus = 0;
    std::int64_t used = 0;     // by all learners that have not ended
    std::int64_t planned = 0;  // for the learners of the plan
  };
  using Key = std::pair<std::string_view, std::string_view>;  // namespace, resource
  std::map<Key, Quota> quotas;
  for (const GpuBudget& budget : snapshot.budgets) {
    quotas[{budget.name_space, budget.resource}].gpus = budget.gpus;
  }
  struct OfJob {
    Quota* quota = nullptr;
    std::int64_t gpus_each = 0;
  };
  std::map<JobKey, OfJob> jobs;
  for (const JobView& job : snapshot.jobs) {
    const auto at = quotas.find({job.key.name_space, ResourceOf(snapshot, job.pool)});
    if (at == quotas.end()) continue;
    const std::int64_t gpus_each = job.needs.resources.gpus;
    at->second.used += std::ssize(job.learners) * gpus_each;
    jobs[job.key] = {.quota = &at->second, .gpus_each = gpus_each};
  }
  for (const Decision& decision : plan.decisions) {
    const auto job = jobs.find(decision.job);
    if (job == jobs.end()) continue;
    job->second.quota->planned += decision.to * job->second.gpus_each;
  }
  for (Decision& decision : plan.decisions) {
    const auto job = jobs.find(decision.job);
    if (job == jobs.end()) continue;
    auto& [quota, gpus_each] = job->second;
    // A quota below what its jobs keep was lowered: the server's word then ends the wait.
    if (quota->planned > quota->gpus) continue;
    for (NewLearner& learner : decision.create) {
      learner.waits_for_quota = quota->used + gpus_each > quota->gpus;
      if (!learner.waits_for_quota) quota->used += gpus_each;
    }
  }
}

}  // namespace pliant::planner
