#include "operator/controller/rounds/job_metrics.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "operator/controller/rounds/cluster_plan.h"

namespace pliant::controller {

metrics::JobStats StatsOf(const JobView& view, const planner::Decision* decision) {
  const planner::Decision planned = decision == nullptr ? planner::Decision{} : *decision;
  const api::JobStatus& status = view.job->status;
  const std::int64_t gpus = view.job->spec.elastic.gpus_per_learner;
  const auto holding = std::ranges::count_if(
      view.learners, [](const api::Pod& pod) { return !pod.ended() && !IsGated(pod); });
  metrics::JobStats stats{.name_space = view.job->meta.name_space,
                          .name = view.job->meta.name,
                          .priority = view.job->spec.priority,
                          .allocated_gpus = holding * gpus,
                          .desired_gpus = planned.to * gpus,
                          .entitlement_gpus = planned.entitlement * gpus,
                          .demand_gpus = planned.demand * gpus,
                          .step = CommittedStep(view),
                          .restarts = status.restarts,
                          .resizes = status.resizes};
  if (const auto& waiting_since = view.soft_state.meter.waiting_since) {
    stats.waiting_since = ToSeconds(waiting_since->time_since_epoch());
  }
  const KnownSpeed& known = view.soft_state.speed;
  if (!known.curve.empty() && holding > 0) {
    const int speed = planner::SpeedWith(known.curve, static_cast<int>(holding));
    const int alone = planner::SpeedWith(known.curve, 1);
    if (alone > 0)
      stats.efficiency = static_cast<double>(speed) / alone / static_cast<double>(holding);
  }
  // The same number on fewer nodes is faster.
  for (const api::MeasuredSpeed& each : known.measured) {
    double& fastest = stats.samples_per_second[each.learners];
    fastest = std::max(fastest, each.samples_per_second);
  }
  return stats;
}

void ReportQueues(const planner::ClusterSnapshot& snapshot, const planner::Plan& plan,
                  metrics::Metrics& metrics) {
  std::vector<metrics::QueueStats> queues;
  for (const planner::QueueShare& share : plan.queues) {
    const auto view = std::ranges::find(snapshot.queues, share.queue, &planner::QueueView::name);
    if (view == snapshot.queues.end()) continue;  // only jobs name it, and anybody may write jobs
    queues.push_back({.name = share.queue,
                      .pool = share.pool,
                      .guaranteed = view->guaranteed_gpus,
                      .demand = share.demand,
                      .entitled = share.entitled,
                      .allocated = share.allocated,
                      .borrowed = share.borrowed,
                      .lent = share.lent,
                      .running = share.running,
                      .waiting = share.waiting});
  }
  std::vector<metrics::PoolStats> pools;
  for (const planner::PoolShare& share : plan.pools) {
    if (!share.exists) continue;
    pools.push_back({.name = share.pool,
                     .capacity = share.capacity,
                     .allocated = share.allocated,
                     .foreign = share.foreign});
  }
  metrics.SetQueues(std::move(queues));
  metrics.SetPools(std::move(pools));
}

void ReportJobs(const JobTable::Views& views, const planner::Plan& plan,
                const CrashNotes* crash_notes,
                const std::function<bool(const std::string& job_uid)>& is_there,
                metrics::Metrics& metrics) {
  using enum api::JobPhase;
  int quarantined = 0;
  std::map<std::string_view, int> waiting;
  for (const planner::ReasonCode code : planner::kReasonsToWait) waiting[ToString(code)] = 0;
  std::map<api::JobPhase, int> phases;
  for (const auto phase : {kQueued, kStarting, kRunning, kResizing, kRecovering, kSuspending,
                           kSuspended, kTerminating, kSucceeded, kFailed}) {
    phases[phase] = 0;
  }
  for (const auto& [key, view] : views) {
    if (!is_there(view.job->meta.uid) || !view.job->unreadable_status.empty()) continue;
    if (QuarantineOf(crash_notes, view.job->meta) != Quarantine::kNone) ++quarantined;
    const api::JobPhase phase = view.job->status.phase;
    ++phases[phase == kNew ? kQueued : phase];
    if (view.job->status.finished()) {
      // Thousands of finished jobs may be kept: they get no metrics of their own.
      metrics.RemoveJob(key.ns, key.name);
      continue;
    }
    const planner::Decision* decision = DecisionOn(plan, key);
    metrics.SetJob(StatsOf(view, decision));
    if (decision == nullptr || decision->to > 0) continue;
    const auto counted = waiting.find(ToString(decision->reason.code));
    if (counted != waiting.end()) ++counted->second;
  }
  metrics.SetJobsWaiting(waiting);
  metrics.SetJobsQuarantined(quarantined);
  for (const auto& [phase, count] : phases) metrics.SetJobsInPhase(ToString(phase), count);
}

}  // namespace pliant::controller
