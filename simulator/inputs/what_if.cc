#include "simulator/inputs/what_if.h"

#include <concepts>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "operator/planner/plan.h"
#include "operator/replay/report.h"
#include "operator/replay/text_table.h"

namespace pliant::simulator {
namespace {

using planner::Decision;
using planner::JobView;
using planner::Plan;
using planner::QueueShare;

using Rows = std::vector<std::vector<std::string>>;

// "4 -> 8"; "4" if nothing changes.
std::string Change(std::integral auto before, std::integral auto after) {
  if (before == after) return std::to_string(before);
  return Format("{} -> {}", before, after);
}

std::map<planner::JobKey, const JobView*> ByKey(const planner::ClusterSnapshot& snapshot) {
  std::map<planner::JobKey, const JobView*> jobs;
  for (const JobView& job : snapshot.jobs) jobs.emplace(job.key, &job);
  return jobs;
}

Rows JobRows(const planner::ClusterSnapshot& snapshot, const planner::ClusterSnapshot& edited,
             const Plan& before, const Plan& after, WhatIfJobs which) {
  Rows rows = {{"JOB", "QUEUE", "PRIORITY", "LEARNERS", "REASON", ""}};
  const auto old_jobs = ByKey(snapshot);
  const auto new_jobs = ByKey(edited);
  for (const Decision& is : after.decisions) {
    const Decision* const was = FindDecision(before, is.job.name_space, is.job.name);
    const auto old_job = old_jobs.find(is.job);
    const auto new_job = new_jobs.find(is.job);
    if (was == nullptr || old_job == old_jobs.end() || new_job == new_jobs.end()) continue;
    if (which == WhatIfJobs::kChanged && replay::ActsAlike(*was, is)) continue;
    rows.push_back({ToString(is.job), new_job->second->queue,
                    Change(old_job->second->priority, new_job->second->priority),
                    Change(was->to, is.to), std::string(ToString(is.reason.code)),
                    is.reason.sentence});
  }
  return rows;
}

Rows QueueRows(const Plan& before, const Plan& after) {
  std::map<std::pair<std::string_view, std::string_view>, std::pair<QueueShare, QueueShare>> shares;
  for (const QueueShare& share : before.queues) shares[{share.pool, share.queue}].first = share;
  for (const QueueShare& share : after.queues) shares[{share.pool, share.queue}].second = share;
  Rows rows = {{"QUEUE", "POOL", "DEMAND", "ENTITLED", "ALLOCATED", "RUNNING", "WAITING"}};
  for (const auto& [name, both] : shares) {
    const auto& [was, is] = both;
    rows.push_back({std::string(name.second), std::string(name.first),
                    Change(was.demand, is.demand), Change(was.entitled, is.entitled),
                    Change(was.allocated, is.allocated), Change(was.running, is.running),
                    Change(was.waiting, is.waiting)});
  }
  return rows;
}

}  // namespace

std::string WhatIf(const replay::DebugSnapshot& debug, const planner::ClusterSnapshot& edited,
                   WhatIfJobs jobs) {
  const Plan before = planner::MakePlan(debug.snapshot, debug.policy);
  const Plan after = planner::MakePlan(edited, debug.policy);
  const Rows rows = JobRows(debug.snapshot, edited, before, after, jobs);
  return (rows.size() == 1 ? "no job changes\n" : replay::TextTable(rows)) + "\n" +
         replay::TextTable(QueueRows(before, after)) + "\n" +
         Format("GPUs to share: {}\n", Change(before.capacity_gpus, after.capacity_gpus));
}

}  // namespace pliant::simulator
