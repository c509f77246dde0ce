#include "operator/replay/report.h"

#include <map>
#include <vector>

#include "base/format.h"
#include "operator/replay/text_table.h"

namespace pliant::replay {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// "2 on gpu-1, 1 on gpu-2"
std::string NodesOf(const planner::Decision& decision) {
  std::map<std::string, int> learners;
  for (const planner::NewLearner& learner : decision.create) ++learners[learner.node];
  std::string text;
  for (const auto& [node, count] : learners) {
    text += Format("{}{} on {}", text.empty() ? "" : ", ", count, node);
  }
  return text;
}

Rows ChangedJobs(const planner::JobKey& job, const planner::Plan& without,
                 const planner::Plan& with) {
  Rows rows = {{"JOB", "NOW", "WITHOUT", "WITH", "REASON", ""}};
  for (const planner::Decision& before : without.decisions) {
    const planner::Decision* after = FindDecision(with, before.job.name_space, before.job.name);
    if (before.job == job || after == nullptr || ActsAlike(before, *after)) continue;
    rows.push_back({ToString(before.job), std::to_string(before.from), std::to_string(before.to),
                    std::to_string(after->to), std::string(ToString(after->reason.code)),
                    after->reason.sentence});
  }
  return rows;
}

}  // namespace

bool ActsAlike(const planner::Decision& left, const planner::Decision& right) {
  return left.to == right.to && left.keep == right.keep && left.create == right.create &&
         left.reason.code == right.reason.code;
}

std::string ReportPlan(const planner::Plan& plan) {
  Rows jobs = {{"JOB", "FROM", "TO", "ENTITLED GPUS", "REASON", ""}};
  for (const planner::Decision& decision : plan.decisions) {
    jobs.push_back({ToString(decision.job), std::to_string(decision.from),
                    std::to_string(decision.to), std::to_string(decision.entitled_gpus),
                    std::string(ToString(decision.reason.code)), decision.reason.sentence});
  }
  Rows queues = {{"QUEUE", "POOL", "DEMAND", "ENTITLED", "ALLOCATED", "BORROWED", "LENT", "RUNNING",
                  "WAITING", "STATE", ""}};
  for (const planner::QueueShare& share : plan.queues) {
    queues.push_back({share.queue, share.pool, std::to_string(share.demand),
                      std::to_string(share.entitled), std::to_string(share.allocated),
                      std::to_string(share.borrowed), std::to_string(share.lent),
                      std::to_string(share.running), std::to_string(share.waiting),
                      std::string(ToString(share.state)), share.sentence});
  }
  Rows pools = {{"POOL", "NODES", "CAPACITY", "ALLOCATED", "FOREIGN"}};
  for (const planner::PoolShare& share : plan.pools) {
    pools.push_back({share.exists ? share.pool : share.pool + " (does not exist)",
                     std::to_string(share.nodes), std::to_string(share.capacity),
                     std::to_string(share.allocated), std::to_string(share.foreign)});
  }
  return TextTable(jobs) + "\n" + TextTable(queues) + "\n" + TextTable(pools);
}

std::string ReportNewJob(const planner::JobView& job, const planner::Plan& without,
                         const planner::Plan& with) {
  const planner::Decision* decision = FindDecision(with, job.key.name_space, job.key.name);
  std::string text;
  if (decision != nullptr) {
    const std::string nodes = NodesOf(*decision);
    text = Format("job {} in queue {} of pool {} gets {} of {} learners{}{}\n  {}: {}\n",
                  ToString(job.key), job.queue, job.pool, decision->to, job.max_learners,
                  nodes.empty() ? "" : ", ", nodes, ToString(decision->reason.code),
                  decision->reason.sentence);
  }
  const Rows changed = ChangedJobs(job.key, without, with);
  if (changed.size() == 1) return Printable(text) + "no other job changes\n";
  return Printable(text) + "other jobs that change, in learners:\n" + TextTable(changed);
}

}  // namespace pliant::replay
