#include "operator/controller/rounds/planning_loop.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/earliest.h"
#include "base/log.h"
#include "operator/controller/actions/look_again.h"
#include "operator/controller/lifecycle/admission.h"
#include "operator/controller/lifecycle/coordinator_policy.h"
#include "operator/controller/rounds/job_metrics.h"
#include "operator/controller/rounds/loop_metrics.h"
#include "operator/controller/rounds/queue_events.h"

namespace pliant::controller {
namespace {

kube::NamespacedName ToKey(const api::ObjectMeta& meta) { return {meta.name_space, meta.name}; }

// Whether it has live pods: then it may change without an event from the stores.
bool IsAwake(const JobView& view) { return !view.coordinators.empty() || HasLiveLearners(view); }

// Whether its current template still has to be checked.
bool AwaitsCheck(const JobView& view) {
  const api::JobSpec& spec = view.job->spec;
  if (view.job->status.finished() || IsSuspended(view)) return false;
  if (IsAdmitted(spec, view.job->status) && !NeedsAreGuessed(view)) return false;
  return spec.learner_template.error.empty() && CurrentTemplateCheck(view) == nullptr;
}

void LogChanges(const std::string& job, const api::JobStatus& before, const api::JobStatus& after) {
  if (before.phase != after.phase) {
    log::Info("job changed phase",
              {{"job", job}, {"from", ToString(before.phase)}, {"to", ToString(after.phase)}});
  }
  if (before.share.desired_learners != after.share.desired_learners) {
    log::Info("job is resized", {{"job", job},
                                 {"from", before.share.desired_learners},
                                 {"to", after.share.desired_learners},
                                 {"reason", after.reason}});
  }
}

}  // namespace

PlanningLoop::PlanningLoop(PlanningLoopParts parts, PlanningLoopOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      views_(parts_.table.views()),
      queue_(
          parts_.loop, [this] { rounds_.Request(); }, ObserverFor(parts_.metrics)),
      monitor_(parts_.loop, parts_.coordinator_calls, parts_.coordinators,
               {.lease_transitions = options_.lease_transitions,
                .now = options_.now,
                .on_change =
                    [this](const std::string& job_uid) {
                      parts_.table.LookAt(job_uid);
                      if (const auto* key = dispatcher_.KeyOfJob(job_uid)) LookAt({*key});
                    },
                .on_call =
                    [this](std::string_view result) { parts_.metrics.OnCoordinatorCall(result); }}),
      dispatcher_({.loop = parts_.loop,
                   .table = parts_.table,
                   .queue = queue_,
                   .runner = parts_.runner,
                   .api_calls = parts_.api_calls,
                   .pod_making_calls = parts_.pod_making_calls},
                  {.pod_making_calls = options_.pod_making_calls,
                   .first_conflict_delay = options_.pace.max_debounce,
                   .now = options_.now,
                   .on_result = std::bind_front(&PlanningLoop::OnResult, this)}),
      leavers_({.loop = parts_.loop,
                .table = parts_.table,
                .runner = parts_.runner,
                .api_calls = parts_.api_calls,
                .monitor = monitor_,
                .request_round = [this] { rounds_.Request(); }},
               options_.now),
      plan_(options_.policy, parts_.table.book(), options_.placeholders.ns, parts_.crash_notes),
      queue_reporter_({.loop = parts_.loop,
                       .book = parts_.table.book(),
                       .writer = parts_.status_writer,
                       .api_calls = parts_.api_calls,
                       .request_round = [this] { rounds_.Request(); },
                       .on_event = options_.on_event}),
      placeholders_(PartsOfNodeRequests(), options_.placeholders),
      provisioning_(PartsOfNodeRequests(), options_.placeholders),
      orphans_(PartsOfNodeRequests(), parts_.table),
      rounds_(parts_.loop, {.pace = options_.pace,
                            .now = options_.now,
                            .is_current = [this] { return parts_.table.stores().current(); },
                            .run = [this](WallTime now) { return RunRound(now); }}) {
  const ClusterStores& stores = parts_.table.stores();
  for (const auto& node : stores.nodes.All()) plan_.SeeNode({ToKey(node->meta), nullptr, node});
  for (const auto& pod : stores.pods.All()) {
    plan_.SeePod({ToKey(pod->meta), nullptr, pod});
    placeholders_.See({ToKey(pod->meta), nullptr, pod});
    orphans_.See({ToKey(pod->meta), nullptr, pod});
  }
  for (const auto& service : stores.services.All()) {
    orphans_.See({ToKey(service->meta), nullptr, service});
  }
  for (const auto& quota : stores.quotas.All()) {
    plan_.SeeQuota({ToKey(quota->meta), nullptr, quota});
  }
  for (const auto& job : stores.jobs.All()) queue_.Add(ToKey(job->meta));
  rounds_.Request();
}

NodeRequestParts PlanningLoop::PartsOfNodeRequests() {
  return {.loop = parts_.loop,
          .client = parts_.client,
          .api_calls = parts_.api_calls,
          .request_round = [this] { rounds_.Request(); }};
}

void PlanningLoop::OnJobChange(const kube::Store<api::ElasticTrainingJob>::Change& change) {
  if (change.after != nullptr) return LookAt({change.key});
  dispatcher_.ForgetJob(change.before->meta.uid);
  leavers_.ForgetJob(change.before->meta.uid);
  monitor_.Forget(change.before->meta.uid);
  queue_.CancelDelay(change.key);  // its ttlSecondsAfterFinished may be a week
  parts_.metrics.RemoveJob(change.key.ns, change.key.name);
  rounds_.Request();
}

void PlanningLoop::OnPodChange(const kube::Store<api::Pod>::Change& change) {
  const bool matters = plan_.SeePod(change);
  placeholders_.See(change);
  orphans_.See(change);
  if (const auto owners = parts_.table.OwnersIn(change); !owners.empty()) {
    LookAt(owners);
  } else if (matters) {
    rounds_.Request();
  }
}

void PlanningLoop::OnNodeChange(const kube::Store<api::Node>::Change& change) {
  if (plan_.SeeNode(change)) rounds_.Request();
}

void PlanningLoop::OnQuotaChange(const kube::Store<api::ResourceQuota>::Change& change) {
  if (plan_.SeeQuota(change)) rounds_.Request();
}

// The status that we have just written is no reason for a round.
void PlanningLoop::OnQueueBookChange() {
  if (std::exchange(book_version_, parts_.table.book().version()) !=
      parts_.table.book().version()) {
    rounds_.Request();
  }
}

void PlanningLoop::OnServiceChange(const kube::Store<api::Service>::Change& change) {
  orphans_.See(change);
  LookAt(parts_.table.OwnersIn(change));
}

// The queue announces no job whose actions are under way, but its learners may have to leave.
void PlanningLoop::LookAt(const std::set<kube::NamespacedName>& jobs) {
  for (const kube::NamespacedName& job : jobs) queue_.Add(job);
  if (!jobs.empty()) rounds_.Request();
}

std::optional<WallTime> PlanningLoop::RunRound(WallTime now) {
  LookAtJobs(now);
  MakePlan(now);
  // Jobs for which the plan has news join those in the queue. A job whose actions are under way is
  // not taken from it now: it comes back when they are done.
  const std::vector<kube::NamespacedName> news = JobsWithNews(plan_.plan(), views_, now);
  LetLeave(news, now);
  for (const kube::NamespacedName& job : news) queue_.Add(job);
  while (const auto key = queue_.Take()) {
    const auto view = views_.find(*key);
    if (view == views_.end()) {
      queue_.Done(*key);
    } else {
      Reconcile(view->second, PlanOf(plan_.plan(), *key), now);
    }
  }
  parts_.metrics.SetQueueDepth(queue_.depth());
  std::optional<WallTime> again_at = plan_.plan().again_at;
  KeepEarliest(leavers_.next_look(), again_at);
  const PlannedCluster cluster{plan_.snapshot(), plan_.plan()};
  KeepEarliest(queue_reporter_.Report(cluster, now), again_at);
  KeepEarliest(RequestNodes(cluster, now), again_at);
  KeepEarliest(orphans_.Reconcile(now), again_at);
  return again_at;
}

// Also of jobs whose actions are under way or rest: others wait for what they hold.
void PlanningLoop::LetLeave(const std::vector<kube::NamespacedName>& news, WallTime now) {
  std::set<kube::NamespacedName> jobs = leavers_.TakeDue(now);
  jobs.insert(news.begin(), news.end());
  jobs.insert(parts_.table.refreshed().begin(), parts_.table.refreshed().end());
  for (const kube::NamespacedName& key : jobs) {
    const auto found = views_.find(key);
    if (found == views_.end()) continue;
    const JobView& view = found->second;
    if (QuarantineOf(parts_.crash_notes, view.job->meta) != Quarantine::kNone) continue;
    FollowCoordinator(view);
    const planner::Decision* decision = DecisionOn(plan_.plan(), key);
    if (decision == nullptr) continue;
    const CrashNotes::Mark busy = CrashNotes::BusyWith(parts_.crash_notes, view.job->meta);
    leavers_.Look(view, *decision, now);
  }
}

std::optional<WallTime> PlanningLoop::RequestNodes(const PlannedCluster& cluster, WallTime now) {
  std::vector<RequestedNodes> wanted =
      RequestedNodesOf(cluster.snapshot, cluster.plan, parts_.table.book());
  // A tenant's template may be huge, and each learner would have a copy of these parts of it.
  std::erase_if(wanted, [](const RequestedNodes& nodes) {
    constexpr std::size_t kMaxSpecBytes = 16 << 10;
    return PlaceholderSpec(nodes, {}).dump().size() > kMaxSpecBytes;
  });
  if (options_.node_requests == NodeRequestKind::kPlaceholders) {
    return placeholders_.Reconcile(wanted, cluster, now);
  }
  // Some may be left from before the setting was changed.
  std::optional<WallTime> again_at = placeholders_.Reconcile({}, cluster, now);
  KeepEarliest(provisioning_.Reconcile(wanted, now), again_at);
  return again_at;
}

void PlanningLoop::LookAtJobs(WallTime now) {
  parts_.table.Refresh(now);
  const std::set<kube::NamespacedName>& refreshed = parts_.table.refreshed();
  for (const kube::NamespacedName& key : refreshed) {
    if (!views_.contains(key)) plan_.SeeJob(key, nullptr, now);
  }
  gpus_of_node_.clear();
  for (const planner::NodeView& node : plan_.Nodes()) {
    std::int64_t& gpus = gpus_of_node_[node.pool];
    gpus = std::max(gpus, node.allocatable.gpus);
  }
  for (auto& [key, view] : views_) {
    if (IsAwake(view) || refreshed.contains(key)) LookAtJob(key, view, now);
  }
}

void PlanningLoop::LookAtJob(const kube::NamespacedName& key, JobView& view, WallTime now) {
  const std::string& uid = view.job->meta.uid;
  dispatcher_.AddJob(uid, key);
  if (QuarantineOf(parts_.crash_notes, view.job->meta) != Quarantine::kNone) {
    plan_.SeeJob(key, nullptr, now);
    return;
  }
  const CrashNotes::Mark busy = CrashNotes::BusyWith(parts_.crash_notes, view.job->meta);
  view.coordinator = monitor_.View(uid);
  for (const Eviction& eviction : ObserveJob(view, now)) {
    options_.on_event(kJobs, view.job->meta, EventOf(eviction));
  }
  if (const auto training = PresentTrainingOf(view)) {
    speeds_.Observe(view, *training, gpus_of_node_[view.membership.pool], now);
  }
  if (AwaitsCheck(view)) {
    if (const auto* accepted = accepted_.Find(*view.job, now)) {
      OnTemplateAccepted(*view.job, accepted->needs, view.soft_state.checked_template);
    }
  }
  plan_.SeeJob(key, IsPlanned(view) ? &view : nullptr, now);
}

void PlanningLoop::MakePlan(WallTime now) {
  const TimePoint began = parts_.loop.Now();
  const planner::Plan& plan = plan_.Make(now);
  parts_.metrics.OnPlan(parts_.loop.Now() - began, plan.capacity_gpus);
}

void PlanningLoop::Reconcile(const JobView& view, const std::optional<JobPlan>& plan,
                             WallTime now) {
  const api::ObjectMeta& job = view.job->meta;
  const kube::NamespacedName key = ToKey(job);
  const BatchDispatcher::Rests rests = dispatcher_.RestsOf(job.uid, now);
  if (rests.all) {
    queue_.Done(key);
    LookAgainAt(rests.all, options_.now(), key, queue_);
    return;
  }
  if (QuarantineOf(parts_.crash_notes, job) != Quarantine::kNone) {
    WriteQuarantineStatus(view, now);
    return;
  }
  const CrashNotes::Mark busy = CrashNotes::BusyWith(parts_.crash_notes, job);
  LifecycleOptions lifecycle = options_.lifecycle;
  lifecycle.clock_agrees = options_.clock_agrees();
  lifecycle.serves = !rests.serving;
  Outcome outcome = ReconcileJob(view, plan, lifecycle, now);
  KeepEarliest(view.overdue_at, outcome.look_again);
  if (outcome.held_back) KeepEarliest(rests.serving, outcome.look_again);
  const LastReported reported_before = view.soft_state.reporting.last;
  parts_.table.SoftState(job.uid) = std::move(outcome.soft_state);
  monitor_.SetBusy(job.uid, outcome.status.phase != api::JobPhase::kRunning);
  if (outcome.write_status || !outcome.actions.empty()) {
    Dispatch(view, std::move(outcome), reported_before);
    return;
  }
  queue_.Done(key);
  LookAgainAt(outcome.look_again, options_.now(), key, queue_);
}

// Reports it in the job's status, and writes nothing else. If a process crashed at that, too, it is
// not tried again.
void PlanningLoop::WriteQuarantineStatus(const JobView& view, WallTime now) {
  const kube::NamespacedName key = ToKey(view.job->meta);
  if (QuarantineOf(parts_.crash_notes, view.job->meta) == Quarantine::kSilent) {
    queue_.Done(key);
    return;
  }
  const CrashNotes::Mark busy = CrashNotes::BusyWith(parts_.crash_notes, view.job->meta);
  Outcome outcome = ReportQuarantine(view, now);
  if (outcome.write_status) {
    Dispatch(view, std::move(outcome), view.soft_state.reporting.last);
  } else {
    queue_.Done(key);
  }
}

void PlanningLoop::FollowCoordinator(const JobView& view) {
  const std::string& uid = view.job->meta.uid;
  const api::Pod* pod = CurrentCoordinator(view);
  const bool runs = pod != nullptr && !pod->ip.empty() &&
                    std::ranges::any_of(pod->containers, &api::ContainerStatus::running);
  if (runs) {
    monitor_.Follow(uid, view.job->meta.name_space, view.job->status.objects.coordinator_term,
                    pod->ip);
  } else {
    monitor_.Disconnect(uid, view.job->status.objects.coordinator_term);
  }
}

void PlanningLoop::Dispatch(const JobView& view, Outcome outcome,
                            const LastReported& reported_before) {
  auto batch = std::make_shared<Batch>(Batch{.job = *view.job,
                                             .write_status = outcome.write_status,
                                             .actions = std::move(outcome.actions),
                                             .held_back = outcome.held_back});
  if (batch->write_status) batch->job.status = outcome.status;
  const planner::Decision* decision = DecisionOn(plan_.plan(), ToKey(view.job->meta));
  std::optional<Duration> wait_ended;
  const auto& waiting_since = view.soft_state.meter.waiting_since;
  if (waiting_since && outcome.status.share.desired_learners > 0) {
    wait_ended = options_.now() - *waiting_since;
  }
  dispatcher_.Dispatch({.batch = std::move(batch),
                        .job_before = view.job,
                        .reported_before = reported_before,
                        .look_again = outcome.look_again,
                        .wait_ended = wait_ended,
                        .reclaimed_by = decision == nullptr ? "" : decision->reclaimed_by});
}

// The job's own event says it, too. Only queues that exist have owners and metrics.
void PlanningLoop::TellOfReclaim(const BatchOrder& order, const api::JobStatus& after) {
  const api::ElasticTrainingJob& job = *order.job_before;
  const int learners = job.status.share.desired_learners - after.share.desired_learners;
  if (learners <= 0) return;
  const Reclaimed reclaimed{.job = kube::ToString(ToKey(job.meta)),
                            .gpus = std::int64_t{learners} * job.spec.elastic.gpus_per_learner,
                            .from = job.spec.queue,
                            .by = order.reclaimed_by,
                            .why = after.reason};
  const auto& queues = parts_.table.book().queues();
  for (const std::string& name : {reclaimed.from, reclaimed.by}) {
    const auto queue = queues.find(name);
    if (queue == queues.end()) continue;
    options_.on_event(kTrainingQueues, queue->second->meta,
                      EventOf(reclaimed, /*is_loser=*/name == reclaimed.from));
  }
  parts_.metrics.OnQueueEviction(reclaimed.from, reclaimed.by);
}

void PlanningLoop::OnResult(const BatchOrder& order, const BatchResult& result, Duration took) {
  const api::ObjectMeta& job = order.batch->job.meta;
  if (result.job) {
    if (order.wait_ended) parts_.metrics.OnWaitEnded(*order.wait_ended);
    for (const ObjectEvent& event : EventsOf(order.job_before->status, result.job->status)) {
      options_.on_event(kJobs, job, event);
    }
    if (!order.reclaimed_by.empty()) TellOfReclaim(order, result.job->status);
    LogChanges(kube::ToString(ToKey(job)), order.job_before->status, result.job->status);
  }
  if (dispatcher_.KeyOfJob(job.uid) == nullptr) return;  // the job has gone meanwhile
  if (result.template_refusal == "") {
    accepted_.Add(order.batch->job, result.admitted_needs, options_.now());
  }
  parts_.metrics.OnReconcile(ReconcileResultOf(result), took);
}

void PlanningLoop::Report() {
  ReportQueues(plan_.snapshot(), plan_.plan(), parts_.metrics);
  parts_.metrics.SetOrphans(orphans_.Stats());
  ReportJobs(
      views_, plan_.plan(), parts_.crash_notes,
      [this](const std::string& uid) { return dispatcher_.KeyOfJob(uid) != nullptr; },
      parts_.metrics);
}

}  // namespace pliant::controller
