#include "operator/controller/rounds/cluster_plan.h"

#include <algorithm>
#include <tuple>

#include "base/earliest.h"

namespace pliant::controller {
namespace {

auto OrderOf(const planner::JobKey& job) { return std::tie(job.name_space, job.name); }
auto OrderOf(const kube::NamespacedName& job) { return std::tie(job.ns, job.name); }

// Heartbeats change nodes all the time, which makes no difference to us.
bool SameBesidesVersion(const api::Node& a, const api::Node& b) {
  api::Node renamed = a;
  renamed.meta.resource_version = b.meta.resource_version;
  renamed.meta.generation = b.meta.generation;
  return renamed == b;
}

// Whether a pod takes the same room, on the same nodes, as before.
bool TakesSameRoom(const api::Pod& a, const api::Pod& b) {
  return a.requests == b.requests && a.node_name == b.node_name && a.ended() == b.ended() &&
         a.nominated_node_name == b.nominated_node_name &&
         a.scheduling_gates == b.scheduling_gates && a.unschedulable == b.unschedulable;
}

template <typename T, typename Same>
bool IsAsBefore(const typename kube::Store<T>::Change& change, Same same) {
  return change.before != nullptr && change.after != nullptr && same(*change.before, *change.after);
}

// Whether the plan says something about the job that its status does not.
bool IsNewsFor(const JobView& view, const planner::Decision& decision, WallTime now) {
  const api::JobStatus& status = view.job->status;
  if (!decision.ChangesNothing() || decision.to != status.share.desired_learners ||
      decision.entitlement != status.share.entitlement) {
    return true;
  }
  if (view.job->meta.deleted) return false;  // its status tells of the deletion
  if (status.share.admitted_minimum != decision.minimum) return true;
  const bool same_numbers =
      decision.demand == 0 || (decision.entitled_gpus == status.share.entitled_gpus &&
                               decision.demand == status.share.demand_learners &&
                               decision.jobs_before == status.share.jobs_before);
  const Reporting& reporting = view.soft_state.reporting;
  const bool waits = reporting.next_progress_write && now < *reporting.next_progress_write &&
                     reporting.last.reason == decision.reason.code;
  return !waits && (decision.reason.sentence != status.reason || !same_numbers);
}

}  // namespace

const planner::Decision* DecisionOn(const planner::Plan& plan, const kube::NamespacedName& job) {
  return planner::FindDecision(plan, job.ns, job.name);
}

std::optional<JobPlan> PlanOf(const planner::Plan& plan, const kube::NamespacedName& job) {
  const planner::Decision* decision = DecisionOn(plan, job);
  if (decision == nullptr) return std::nullopt;
  JobPlan of_job{.decision = *decision};
  for (const planner::GateOpening& opening : plan.gates_open) {
    if (opening.job == decision->job) of_job.open.push_back(opening.learner);
  }
  return of_job;
}

std::vector<kube::NamespacedName> JobsWithNews(const planner::Plan& plan,
                                               const std::map<kube::NamespacedName, JobView>& views,
                                               WallTime now) {
  std::vector<kube::NamespacedName> jobs;
  auto view = views.begin();  // in the same order as decisions
  for (const planner::Decision& decision : plan.decisions) {
    while (OrderOf(view->first) != OrderOf(decision.job)) ++view;
    if (IsNewsFor(view->second, decision, now)) jobs.push_back(view->first);
  }
  for (const planner::GateOpening& opening : plan.gates_open) {
    jobs.push_back({opening.job.name_space, opening.job.name});
  }
  return jobs;
}

bool ClusterPlan::SeeNode(const kube::Store<api::Node>::Change& change) {
  if (IsAsBefore<api::Node>(change, SameBesidesVersion)) return false;
  builder_.SeeNode(change);
  return true;
}

bool ClusterPlan::SeePod(const kube::Store<api::Pod>::Change& change) {
  builder_.SeePod(change);
  return !IsAsBefore<api::Pod>(change, TakesSameRoom);
}

// The used part of a quota changes with every pod, and is not read.
bool ClusterPlan::SeeQuota(const kube::Store<api::ResourceQuota>::Change& change) {
  const auto same = [](const api::ResourceQuota& a, const api::ResourceQuota& b) {
    return a.gpus == b.gpus && a.others == b.others;
  };
  if (IsAsBefore<api::ResourceQuota>(change, same)) return false;
  builder_.SeeQuota(change);
  return true;
}

void ClusterPlan::SeeJob(const kube::NamespacedName& key, const JobView* planned, WallTime now) {
  builder_.SeeJob(key, planned);
  if (planned != nullptr) TryAlone(*planned, now);
}

// A process that crashes at the plan for all jobs does not show which job caused it. Once one has,
// each job is planned alone before it is planned with the others: also in the first round, because
// a process that crashes there has no second one.
void ClusterPlan::TryAlone(const JobView& view, WallTime now) {
  if (crash_notes_ == nullptr || crash_notes_->DeathsAtPlan() == 0) return;
  const planner::ClusterSnapshot& frame = builder_.Frame();
  std::ignore = planner::MakePlan({.now = now,
                                   .nodes = frame.nodes,
                                   .jobs = {PlannerView(view)},
                                   .queues = frame.queues,
                                   .pools = frame.pools},
                                  policy_);
}

const planner::Plan& ClusterPlan::Make(WallTime now) {
  const CrashNotes::Mark busy = CrashNotes::BusyWithPlan(crash_notes_);
  plan_ = planner::MakePlan(builder_.Build(now), policy_, fits_);
  KeepEarliest(builder_.again_at(), plan_.again_at);
  return plan_;
}

}  // namespace pliant::controller
