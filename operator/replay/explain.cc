#include "operator/replay/explain.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "operator/planner/admission_order.h"
#include "operator/planner/model.h"
#include "operator/replay/enumerators.h"
#include "operator/replay/text_table.h"

namespace pliant::replay {
namespace {

using planner::Decision;
using planner::JobView;

constexpr std::size_t kMaxNameBytes = 253;

std::string Gpus(std::int64_t count) { return Counted(count, "GPU"); }
std::string Learners(std::int64_t count) { return Counted(count, "learner"); }

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The jobs of the queue that take part in the sharing, those that were admitted before first, then
// the others by name. The order depends on these jobs and their queue alone, so the nodes need not
// be modelled.
std::vector<const JobView*> JobsInOrder(const planner::ClusterSnapshot& snapshot,
                                        const JobView& job) {
  planner::ClusterSnapshot of_queue{.now = snapshot.now, .queues = snapshot.queues};
  std::vector<const JobView*> views;
  for (const JobView& each : snapshot.jobs) {
    if (each.queue != job.queue || each.pool != job.pool) continue;
    of_queue.jobs.push_back(each);
    views.push_back(&each);
  }
  planner::FitMemory memory;
  const planner::Model model =
      planner::MakeModel(of_queue, {.pool = {.name = job.pool}}, planner::Policy{}, memory);
  std::vector<planner::JobIndex> admitted;
  std::vector<planner::JobIndex> waiting;
  std::vector<planner::JobIndex> inactive;
  for (planner::JobIndex index = 0; index < std::ssize(model.jobs); ++index) {
    const planner::Job& each = model.jobs[index];
    (!each.active ? inactive : each.admitted_before() ? admitted : waiting).push_back(index);
  }
  std::vector<const JobView*> ordered;
  for (const auto& group : {planner::InAdmissionOrder(model, std::move(admitted)),
                            planner::InAdmissionOrder(model, std::move(waiting)), inactive}) {
    for (const planner::JobIndex index : group) {
      ordered.push_back(views[model.jobs[index].view - of_queue.jobs.data()]);
    }
  }
  return ordered;
}

std::string InMinutes(planner::WallTime time) {
  return Format("{:%FT%H:%MZ}", std::chrono::ceil<std::chrono::minutes>(time));
}

std::string OfJob(const JobView& job, const Decision& decision) {
  const std::int64_t gpus_each = job.needs.resources.gpus;
  std::string text =
      Format("job {}/{}: {} now, {} planned ({})\n", job.key.name_space, job.key.name,
             Learners(decision.from), decision.to, Gpus(decision.to * gpus_each));
  text += Format("  {}: {}\n", ToString(decision.reason.code), decision.reason.sentence);
  text += Format("  its share: {}, which gives {}; it can use {}\n", Gpus(decision.entitled_gpus),
                 Learners(decision.entitlement), Learners(decision.demand));
  text += Format(
      "  its spec: priority {}, minLearners {}, maxLearners {}, gpusPerLearner {}, {} logical "
      "shards, {}\n",
      job.priority, job.min_learners, job.max_learners, gpus_each, job.training.logical_shards,
      ToString(job.training.reproducibility));
  if (decision.minimum && *decision.minimum < job.min_learners) {
    text +=
        Format("  minLearners counts as {}: it was raised while the job ran\n", *decision.minimum);
  }
  if (decision.starts_at)
    text += Format("  expected to start at {}\n", InMinutes(*decision.starts_at));
  if (decision.ends_at) text += Format("  expected to end at {}\n", InMinutes(*decision.ends_at));
  if (!decision.drop.empty()) text += Format("  leaves: {}\n", Joined(decision.drop));
  std::vector<std::string> nodes;
  for (const planner::NewLearner& learner : decision.create) nodes.push_back(learner.node);
  if (!nodes.empty()) text += Format("  new learners on: {}\n", Joined(nodes));
  if (decision.cap) {
    text += Format("  learners did not start, {} in a row: no more than {} before {:%FT%TZ}\n",
                   decision.cap->strikes == 1 ? "once" : Format("{} times", decision.cap->strikes),
                   Learners(decision.cap->learners),
                   std::chrono::ceil<planner::Seconds>(decision.cap->until));
  }
  return text;
}

std::string OfQueue(const planner::ClusterSnapshot& snapshot, const planner::Plan& plan,
                    const JobView& job) {
  std::string text = Format("queue {} of pool {}", job.queue, job.pool);
  const auto share = std::ranges::find_if(plan.queues, [&](const planner::QueueShare& each) {
    return each.queue == job.queue && each.pool == job.pool;
  });
  if (share != plan.queues.end()) {
    text += Format(": {}: {}\n", planner::ToString(share->state), share->sentence);
    text += Format("  its share: {}; its jobs have {} and can use {}; borrowed {}, lent {}\n",
                   Gpus(share->entitled), Gpus(share->allocated), Gpus(share->demand),
                   share->borrowed, share->lent);
  } else {
    text += '\n';
  }
  const auto at = std::ranges::find_if(snapshot.queues, [&](const planner::QueueView& each) {
    return each.name == job.queue && each.pool == job.pool;
  });
  if (at == snapshot.queues.end() && job.queue != planner::kBuiltInQueue) {
    return text + "  there is no such queue in this pool\n";
  }
  const planner::QueueView queue = at == snapshot.queues.end() ? planner::QueueView{} : *at;
  const auto or_none = [](const std::optional<std::int64_t>& gpus, std::string_view none) {
    return gpus ? Gpus(*gpus) : std::string(none);
  };
  text += Format(
      "  its spec: weight {}, guarantee {}, limit {}, lends {}, policy {}{}{}{}\n", queue.weight,
      Gpus(queue.guaranteed_gpus), or_none(queue.limit_gpus, "none"),
      or_none(queue.lending_limit_gpus, "all"), ToString(queue.policy),
      queue.strict ? ", strict" : "", queue.evicts ? "" : ", only shrinks others",
      queue.stop == planner::QueueStop::kNone ? "" : Format(", stop {}", ToString(queue.stop)));
  return text;
}

std::string OfPool(const planner::ClusterSnapshot& snapshot, const planner::Plan& plan,
                   const std::string& name) {
  const auto share = std::ranges::find(plan.pools, name, &planner::PoolShare::pool);
  if (share == plan.pools.end() || !share->exists) {
    return Format("pool {}: there is no such pool\n", name);
  }
  const auto pool = std::ranges::find(snapshot.pools, name, &planner::PoolView::name);
  return Format("pool {}: {} to share on {}; jobs have {}, other pods {}, and {} are reserved\n",
                name, Gpus(share->capacity), Counted(share->nodes, "node"), share->allocated,
                share->foreign, pool == snapshot.pools.end() ? 0 : pool->reserved_gpus);
}

std::string OfJobs(const planner::ClusterSnapshot& snapshot, const planner::Plan& plan,
                   const JobView& job) {
  std::vector<std::vector<std::string>> rows = {
      {"", "JOB", "NOW", "PLANNED", "GPUS", "SHARE", "PRIORITY", "REASON", ""}};
  for (const JobView* each : JobsInOrder(snapshot, job)) {
    const Decision* decision = FindDecision(plan, each->key.name_space, each->key.name);
    if (decision == nullptr) continue;
    rows.push_back(
        {each == &job ? ">" : "", ToString(each->key), std::to_string(decision->from),
         std::to_string(decision->to), std::to_string(decision->to * each->needs.resources.gpus),
         std::to_string(decision->entitled_gpus), std::to_string(each->priority),
         std::string(planner::ToString(decision->reason.code)), decision->reason.sentence});
  }
  return TextTable(rows);
}

}  // namespace

Result<JobName> ParseJobName(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || text.find('/', slash + 1) != std::string_view::npos) {
    return Invalid("a job is NAMESPACE/NAME");
  }
  JobName job{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
  for (const std::string& part : {job.name_space, job.name}) {
    const bool is_name =
        !part.empty() && part.size() <= kMaxNameBytes && std::ranges::all_of(part, [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
        });
    if (!is_name) {
      return Invalid("a job is NAMESPACE/NAME, both of lower-case letters, digits, - and .");
    }
  }
  return job;
}

Result<std::string> Explain(const planner::ClusterSnapshot& snapshot, const planner::Plan& plan,
                            const JobName& name) {
  const auto job = std::ranges::find_if(snapshot.jobs, [&](const JobView& each) {
    return each.key.name_space == name.name_space && each.key.name == name.name;
  });
  const Decision* decision = FindDecision(plan, name.name_space, name.name);
  if (job == snapshot.jobs.end() || decision == nullptr) {
    return Fail(ErrorCode::kNotFound,
                Format("job {}/{} is not in the last plan: it does not exist, or its spec cannot "
                       "be read (kubectl describe says so)",
                       name.name_space, name.name));
  }
  return Printable(OfJob(*job, *decision)) + "\n" + Printable(OfQueue(snapshot, plan, *job)) +
         "\n" + Printable(OfPool(snapshot, plan, job->pool)) +
         "\njobs of the queue, in the order in which they are admitted:\n" +
         OfJobs(snapshot, plan, *job);
}

Result<std::string> Explain(const DebugSnapshot& last, std::string_view job) {
  ASSIGN_OR_RETURN(const JobName name, ParseJobName(job));
  return Explain(last.snapshot, last.plan.value_or(planner::Plan{}), name);
}

}  // namespace pliant::replay
