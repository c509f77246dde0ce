#include "operator/controller/planning_loop.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "operator/controller/coordinator_policy.h"
#include "operator/controller/job_memory.h"
#include "operator/controller/names.h"

namespace pliant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr BackoffOptions kFailureBackoff{
    .first = seconds(1), .most = minutes(1), .factor = 2, .jitter = 0};
constexpr BackoffOptions kRefusalBackoff{
    .first = seconds(5), .most = minutes(5), .factor = 2, .jitter = 0};

constexpr int kDeathsMost = 2;

BackoffOptions ConflictBackoff(const RoundPacer::Options& pace) {
  return {.first = pace.debounce_most, .most = minutes(1), .factor = 2, .jitter = 0};
}

kube::NamespacedName KeyOf(const api::ObjectMeta& meta) { return {meta.name_space, meta.name}; }

std::string JobOf(const api::ObjectMeta& job) { return job.name_space + "/" + job.name; }

// Heartbeats change nodes all the time without a difference to us.
bool SameBesidesVersion(const api::Node& a, const api::Node& b) {
  api::Node renamed = a;
  renamed.meta.resource_version = b.meta.resource_version;
  renamed.meta.generation = b.meta.generation;
  return renamed == b;
}

// Whether a pod that is not ours takes room elsewhere, or more or less of it, than before.
bool TakesSameRoom(const api::Pod& a, const api::Pod& b) {
  return a.requests == b.requests && a.node_name == b.node_name && a.ended() == b.ended() &&
         a.nominated_node_name == b.nominated_node_name && a.scheduling_gates == b.scheduling_gates;
}

// Whether the plan says something of the job that its status does not.
bool IsNewsFor(const JobView& view, const planner::Decision& decision, WallTime now) {
  const api::JobStatus& status = view.job->status;
  if (!decision.ChangesNothing() || decision.to != status.desired_learners ||
      decision.entitlement != status.entitlement) {
    return true;
  }
  const bool waits = view.memory.figures_due && now < *view.memory.figures_due &&
                     view.memory.told.reason == decision.reason.code;
  return !waits && decision.reason.sentence != status.reason;
}

// Whether it has pods that live: then it changes without a word from the stores.
bool IsAwake(const JobView& view) { return !view.coordinators.empty() || HasLiveLearners(view); }

// Whether admission webhooks have a say in it: some take seconds.
bool MakesPods(const Batch& batch) {
  return std::ranges::any_of(batch.actions, [](const Action& action) {
    return std::holds_alternative<CheckTemplate>(action) ||
           std::holds_alternative<CreateCoordinator>(action) ||
           std::holds_alternative<CreateLearner>(action);
  });
}

// Whether its template is yet to be checked, as it is now.
bool AwaitsCheck(const JobView& view) {
  const api::JobSpec& spec = view.job->spec;
  if (view.job->status.finished() || spec.suspend) return false;
  if (IsAdmitted(spec, view.job->status) && !NeedsAreGuessed(view)) return false;
  return spec.learner_template.error.empty() && CurrentTemplateCheck(view) == nullptr;
}

void RememberAdmitted(const api::ElasticTrainingJob& job,
                      const std::shared_ptr<const planner::PodNeeds>& needs, JobMemory& memory) {
  if (needs != nullptr) memory.admitted_needs = {job.spec.learner_template.hash, needs};
}

// Before the next try. The server may ask for more than is usual, but not that the job is left
// alone for hours: an admission webhook speaks here, too.
Duration DelayAfter(const kube::KubeError& error, Backoff& backoff) {
  const Duration asked = error.retry_after.value_or(Duration::zero());
  return std::max(backoff.Next(0), std::min(asked, kRefusalBackoff.most));
}

auto KeyIn(const planner::JobKey& job) { return std::tie(job.name_space, job.name); }
auto KeyIn(const kube::NamespacedName& job) { return std::tie(job.ns, job.name); }

kube::WorkQueueObserver ObserverFor(metrics::Metrics& metrics) {
  return {.on_add = [&metrics] { metrics.OnQueueAdd(); },
          .on_take = [&metrics](Duration waited) { metrics.OnQueueTake(waited); },
          .on_done = [&metrics](Duration worked) { metrics.OnQueueDone(worked); }};
}

// `decision` is an empty one for a job that is not planned.
metrics::JobFigures FiguresOf(const JobView& view, const planner::Decision& decision) {
  const api::JobStatus& status = view.job->status;
  const std::int64_t gpus = view.job->spec.elastic.gpus_per_learner;
  const auto holding = std::ranges::count_if(
      view.learners, [](const api::Pod& pod) { return !pod.ended() && !IsGated(pod); });
  metrics::JobFigures figures{.name_space = view.job->meta.name_space,
                              .name = view.job->meta.name,
                              .priority = view.job->spec.priority,
                              .allocated_gpus = holding * gpus,
                              .desired_gpus = decision.to * gpus,
                              .entitlement_gpus = decision.entitlement * gpus,
                              .demand_gpus = decision.demand * gpus,
                              .step = CommittedStep(view),
                              .restarts = status.restarts,
                              .resizes = status.resizes};
  if (view.memory.waiting_since) {
    figures.waiting_since = ToSeconds(view.memory.waiting_since->time_since_epoch());
  }
  return figures;
}

}  // namespace

PlanningLoop::PlanningLoop(PlanningLoopParts parts, PlanningLoopOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      monitor_(parts_.loop, parts_.coordinator_calls, parts_.coordinators,
               {.lease_transitions = options_.lease_transitions,
                .now = options_.now,
                .on_change =
                    [this](const std::string& job_uid) {
                      parts_.table.LookAt(job_uid);
                      const auto course = courses_.find(job_uid);
                      if (course != courses_.end()) queue_.Add(course->second.key);
                    },
                .on_call =
                    [this](std::string_view result) { parts_.metrics.OnCoordinatorCall(result); }}),
      pod_making_calls_(parts_.loop, parts_.pod_making_calls, options_.pod_making_calls),
      queue_(
          parts_.loop, [this] { RequestRound(); }, ObserverFor(parts_.metrics)),
      views_(parts_.table.views()),
      pacer_(options_.pace),
      alive_(std::make_shared<bool>(true)) {
  const ClusterStores& stores = parts_.table.stores();
  for (const auto& node : stores.nodes.All()) builder_.SeeNode({KeyOf(node->meta), nullptr, node});
  for (const auto& pod : stores.pods.All()) builder_.SeePod({KeyOf(pod->meta), nullptr, pod});
  for (const auto& quota : stores.quotas.All()) {
    builder_.SeeQuota({KeyOf(quota->meta), nullptr, quota});
  }
  for (const auto& job : stores.jobs.All()) queue_.Add(KeyOf(job->meta));
  RequestRound();
}

PlanningLoop::~PlanningLoop() {
  *alive_ = false;
  parts_.loop.Cancel(round_timer_);
  parts_.loop.Cancel(again_timer_);
}

void PlanningLoop::OnJobChange(const kube::Store<api::ElasticTrainingJob>::Change& change) {
  if (change.after != nullptr) {
    queue_.Add(change.key);
  } else {
    ForgetJob(change.before->meta.uid);
    queue_.CancelDelay(change.key);  // its time to live may be a week
    parts_.metrics.RemoveJob(change.key.ns, change.key.name);
    RequestRound();
  }
}

void PlanningLoop::OnPodChange(const kube::Store<api::Pod>::Change& change) {
  builder_.SeePod(change);
  if (const auto owners = parts_.table.OwnersIn(change); !owners.empty()) {
    LookAt(owners);
    return;
  }
  if (change.before == nullptr || change.after == nullptr ||
      !TakesSameRoom(*change.before, *change.after)) {
    RequestRound();
  }
}

void PlanningLoop::OnNodeChange(const kube::Store<api::Node>::Change& change) {
  if (change.before != nullptr && change.after != nullptr &&
      SameBesidesVersion(*change.before, *change.after)) {
    return;
  }
  builder_.SeeNode(change);
  RequestRound();
}

// What is used of it changes with every pod, and is not read.
void PlanningLoop::OnQuotaChange(const kube::Store<api::ResourceQuota>::Change& change) {
  if (change.before != nullptr && change.after != nullptr &&
      change.before->gpus == change.after->gpus) {
    return;
  }
  builder_.SeeQuota(change);
  RequestRound();
}

void PlanningLoop::OnServiceChange(const kube::Store<api::Service>::Change& change) {
  LookAt(parts_.table.OwnersIn(change));
}

void PlanningLoop::LookAt(const std::set<kube::NamespacedName>& jobs) {
  for (const kube::NamespacedName& job : jobs) queue_.Add(job);
}

void PlanningLoop::LookAgain(const kube::NamespacedName& key, const std::optional<WallTime>& at) {
  if (at) queue_.AddAfter(key, std::max<Duration>(*at - options_.now(), milliseconds(10)));
}

void PlanningLoop::ForgetJob(const std::string& job_uid) {
  courses_.erase(job_uid);
  monitor_.Forget(job_uid);
}

void PlanningLoop::RequestRound() {
  const TimePoint now = parts_.loop.Now();
  parts_.loop.Cancel(round_timer_);
  round_timer_ = parts_.loop.PostAfter(pacer_.OnChange(now) - now, [this] { Round(); });
}

void PlanningLoop::Round() {
  pacer_.OnRound();
  // What is absent from a store that was not listed yet may well exist; and what a predecessor did
  // while the store could not follow is not seen.
  if (!parts_.table.stores().current()) {
    round_timer_ = parts_.loop.PostAfter(options_.pace.debounce_most, [this] { RequestRound(); });
    return;
  }
  const WallTime now = options_.now();
  const TimePoint round_began = parts_.loop.Now();

  LookAtJobs(now);
  MakePlan(now);
  QueueNews(now);
  while (const auto key = queue_.Take()) {
    const auto view = views_.find(*key);
    if (view == views_.end()) {
      queue_.Done(*key);
    } else {
      Reconcile(view->second, PlanOf(*key), now);
    }
  }
  parts_.metrics.SetQueueDepth(queue_.depth());
  pacer_.OnRoundDone(round_began, parts_.loop.Now());

  // Time may change the plan too.
  parts_.loop.Cancel(again_timer_);
  if (plan_.again_at) {
    again_timer_ = parts_.loop.PostAfter(
        std::max<Duration>(*plan_.again_at - now, milliseconds(10)), [this] { RequestRound(); });
  }
}

// 1. What is known of each job.
void PlanningLoop::LookAtJobs(WallTime now) {
  parts_.table.Refresh(now);
  const std::set<kube::NamespacedName>& refreshed = parts_.table.refreshed();
  for (const kube::NamespacedName& key : refreshed) {
    if (!views_.contains(key)) builder_.SeeJob(key, nullptr);
  }
  for (auto& [key, view] : views_) {
    if (!IsAwake(view) && !refreshed.contains(key)) continue;
    const std::string& uid = view.job->meta.uid;
    courses_.try_emplace(uid, Course{.key = key,
                                     .backoff = Backoff(kFailureBackoff),
                                     .conflicts = Backoff(ConflictBackoff(options_.pace))});
    if (IsQuarantined(view)) {
      builder_.SeeJob(key, nullptr);
      continue;
    }
    const CrashNotes::Mark busy = CrashNotes::BusyWith(parts_.crash_notes, view.job->meta);
    view.coordinator = monitor_.View(uid);
    view.memory = Remember(view, now);
    if (AwaitsCheck(view)) {
      if (const auto* accepted = accepted_.Find(*view.job, now)) {
        view.memory.template_check = {.generation = view.job->meta.generation, .accepted = true};
        RememberAdmitted(*view.job, accepted->needs, view.memory);
      }
    }
    builder_.SeeJob(key, IsPlanned(view) ? &view : nullptr);
    if (IsPlanned(view)) PlanAlone(view, now);
  }
}

// Two processes died while they were busy with it: the third does other jobs' business.
bool PlanningLoop::IsQuarantined(const JobView& view) const {
  return parts_.crash_notes != nullptr &&
         parts_.crash_notes->DeathsAt(view.job->meta) >= kDeathsMost;
}

// A process that dies at the plan for all does not say at which job. Once one has, each is planned
// by itself before it is planned with the others.
void PlanningLoop::PlanAlone(const JobView& view, WallTime now) {
  if (parts_.crash_notes == nullptr || parts_.crash_notes->DeathsAtPlan() == 0) return;
  std::ignore = planner::MakePlan(
      {.now = now, .nodes = builder_.snapshot().nodes, .jobs = {PlannerView(view)}},
      options_.policy);
}

// In its status, which is all that is written. Whoever died of that too does not try it again.
void PlanningLoop::TellOfQuarantine(const JobView& view, WallTime now) {
  const kube::NamespacedName key = KeyOf(view.job->meta);
  if (parts_.crash_notes->DeathsAt(view.job->meta) > kDeathsMost) {
    queue_.Done(key);
    return;
  }
  const CrashNotes::Mark busy = CrashNotes::BusyWith(parts_.crash_notes, view.job->meta);
  Outcome outcome = ReportQuarantine(view, now);
  if (!outcome.write_status) {
    queue_.Done(key);
    return;
  }
  Dispatch(view, std::move(outcome), view.memory.told);
}

// 2. One plan for all.
void PlanningLoop::MakePlan(WallTime now) {
  const TimePoint began = parts_.loop.Now();
  const CrashNotes::Mark busy = CrashNotes::BusyWithPlan(parts_.crash_notes);
  plan_ = planner::MakePlan(builder_.Build(now), options_.policy, fits_);
  parts_.metrics.OnPlan(parts_.loop.Now() - began, plan_.capacity_gpus);
}

// 3. Beside those who asked for a look, those for whom the plan has news come to have one. A job
// whose actions are under way is neither: it comes back when they are done.
void PlanningLoop::QueueNews(WallTime now) {
  auto view = views_.begin();  // in the same order as decisions
  for (const planner::Decision& decision : plan_.decisions) {
    while (KeyIn(view->first) != KeyIn(decision.job)) ++view;
    if (IsNewsFor(view->second, decision, now)) queue_.Add(view->first);
  }
  for (const planner::GateOpening& opening : plan_.gates_open) {
    queue_.Add({opening.job.name_space, opening.job.name});
  }
}

const planner::Decision* PlanningLoop::DecisionOn(const kube::NamespacedName& job) const {
  const auto at = std::ranges::lower_bound(plan_.decisions, KeyIn(job), {},
                                           [](const planner::Decision& d) { return KeyIn(d.job); });
  return at == plan_.decisions.end() || KeyIn(at->job) != KeyIn(job) ? nullptr : &*at;
}

std::optional<JobPlan> PlanningLoop::PlanOf(const kube::NamespacedName& job) const {
  const planner::Decision* decision = DecisionOn(job);
  if (decision == nullptr) return std::nullopt;
  JobPlan plan{.decision = *decision};
  for (const planner::GateOpening& opening : plan_.gates_open) {
    if (opening.job == decision->job) plan.open.push_back(opening.learner);
  }
  return plan;
}

void PlanningLoop::Reconcile(const JobView& view, const std::optional<JobPlan>& plan,
                             WallTime now) {
  const kube::NamespacedName key = KeyOf(view.job->meta);
  const Course& course = courses_.at(view.job->meta.uid);
  if (now < course.not_before) {
    queue_.Done(key);
    LookAgain(key, course.not_before);
    return;
  }
  if (IsQuarantined(view)) {
    TellOfQuarantine(view, now);
    return;
  }
  const CrashNotes::Mark busy = CrashNotes::BusyWith(parts_.crash_notes, view.job->meta);
  LifecycleOptions lifecycle = options_.lifecycle;
  lifecycle.clock_agrees = options_.clock_agrees();
  Outcome outcome = ReconcileJob(view, plan, lifecycle, now);
  KeepEarliest(view.overdue_at, outcome.look_again);
  const Told told_before = view.memory.told;
  parts_.table.Memory(view.job->meta.uid) = outcome.memory;
  FollowCoordinator(view, outcome);
  if (outcome.write_status || !outcome.actions.empty()) {
    Dispatch(view, std::move(outcome), told_before);
    return;
  }
  queue_.Done(key);
  LookAgain(key, outcome.look_again);
}

void PlanningLoop::FollowCoordinator(const JobView& view, const Outcome& outcome) {
  const std::string& uid = view.job->meta.uid;
  const api::Pod* pod = CurrentCoordinator(view);
  const bool runs = pod != nullptr && !pod->ip.empty() &&
                    std::ranges::any_of(pod->containers, &api::ContainerStatus::running);
  if (runs) {
    monitor_.Follow(uid, view.job->meta.name_space, view.job->status.coordinator_term, pod->ip);
  } else {
    monitor_.Lose(uid, view.job->status.coordinator_term);
  }
  if (outcome.tell) monitor_.Tell(uid, *outcome.tell);
  monitor_.SetBusy(uid, outcome.status.phase != api::JobPhase::kRunning);
}

void PlanningLoop::Dispatch(const JobView& view, Outcome outcome, const Told& told_before) {
  auto batch = std::make_shared<Batch>(Batch{.job = *view.job,
                                             .write_status = outcome.write_status,
                                             .actions = std::move(outcome.actions)});
  if (batch->write_status) batch->job.status = outcome.status;
  const WallTime now = options_.now();
  parts_.table.Begin(batch, now);
  std::optional<Duration> wait_ended;
  if (view.memory.waiting_since && outcome.status.desired_learners > 0) {
    wait_ended = now - *view.memory.waiting_since;
  }
  Run({.batch = std::move(batch),
       .before = view.job,
       .told_before = told_before,
       .look_again = outcome.look_again,
       .wait_ended = wait_ended,
       .began = parts_.loop.Now()});
}

void PlanningLoop::Run(Errand errand) {
  const bool makes_pods = !errand.clears && MakesPods(*errand.batch);
  const std::string name_space = errand.batch->job.meta.name_space;
  auto call = [this, alive = alive_, errand = std::move(errand), &loop = parts_.loop,
               &runner = parts_.runner] {
    auto result = std::make_shared<const BatchResult>(errand.clears ? runner.Clear(*errand.batch)
                                                                    : runner.Run(*errand.batch));
    loop.Post([this, alive, errand, result] {
      if (*alive) OnDone(errand, *result);
    });
  };
  if (makes_pods) {
    pod_making_calls_.Run(name_space, std::move(call));
  } else {
    parts_.api_calls(std::move(call));
  }
}

void PlanningLoop::OnDone(const Errand& errand, const BatchResult& result) {
  const Batch& batch = *errand.batch;
  const api::JobStatus& before = errand.before->status;
  const api::ObjectMeta& job = batch.job.meta;
  parts_.table.Settle(batch, result, options_.now());
  if (errand.wait_ended && result.job) parts_.metrics.OnWaitEnded(*errand.wait_ended);
  if (result.job) {
    for (const JobEvent& event : EventsOf(before, result.job->status)) {
      options_.on_event(job, event);
    }
    if (before.phase != result.job->status.phase) {
      log::Info("job changed phase", {{"job", JobOf(job)},
                                      {"from", ToString(before.phase)},
                                      {"to", ToString(result.job->status.phase)}});
    }
    if (before.desired_learners != result.job->status.desired_learners) {
      log::Info("job is resized", {{"job", JobOf(job)},
                                   {"from", before.desired_learners},
                                   {"to", result.job->status.desired_learners},
                                   {"reason", result.job->status.reason}});
    }
  }
  const auto course = courses_.find(job.uid);
  if (course == courses_.end()) {  // the job went meanwhile
    queue_.Done(KeyOf(job));
    return;
  }
  RememberWrite(errand, result);
  RememberTemplateCheck(batch, result);
  for (const LookForPod& pod : result.gone) {
    if (!pod.uid.empty()) parts_.table.Memory(job.uid).gone.insert(pod.uid);
  }
  for (const auto& [pod, cause] : result.mount_causes) {
    parts_.table.Memory(job.uid).mount_causes[pod] = {.text = cause, .asked = options_.now()};
  }
  parts_.metrics.OnReconcile(!result.error ? metrics::ReconcileResult::kSuccess
                             : result.error->code == ErrorCode::kConflict
                                 ? metrics::ReconcileResult::kRequeue
                                 : metrics::ReconcileResult::kError,
                             parts_.loop.Now() - errand.began);
  if (!result.unanswered.empty()) {
    RememberNoAnswer(job, std::span(batch.actions).subspan(result.failed.value_or(0)),
                     result.unanswered, options_.now(), parts_.table.Memory(job.uid));
  }
  if (result.unclear) {
    Clear(errand, result);
    return;
  }
  queue_.Done(KeyOf(job));
  if (result.error) {
    OnFailure(batch, result);
    return;
  }
  const bool unanswered = errand.unanswered || !result.unanswered.empty();
  if (unanswered && result.created.empty() && result.opened.empty()) {  // it clearly was not done
    Rest(KeyOf(job), course->second, course->second.backoff.Next(0));
    return;
  }
  ForgetRefusal(parts_.table.Memory(job.uid));
  course->second.backoff = Backoff(kFailureBackoff);
  course->second.conflicts.Reset();
  course->second.not_before = {};
  course->second.last_error.clear();
  // What was done may call for more; then it rests.
  queue_.Add(KeyOf(job));
  LookAgain(KeyOf(job), errand.look_again);
}

// Asks about the one action until its outcome is clear. Until then the job is left alone, and the
// action counts as done.
void PlanningLoop::Clear(const Errand& errand, const BatchResult& result) {
  Course& course = courses_.at(errand.batch->job.meta.uid);
  LogFailure(course, *errand.batch, *result.error);
  auto rest = std::make_shared<Batch>(
      Batch{.job = errand.batch->job, .actions = {errand.batch->actions[*result.failed]}});
  if (result.job) rest->job = *result.job;
  Errand again{.batch = rest,
               .clears = true,
               .unanswered = errand.unanswered || !result.unanswered.empty(),
               .before = {rest, &rest->job},
               .began = errand.began};
  parts_.loop.PostAfter(DelayAfter(*result.error, course.backoff),
                        [this, alive = alive_, again = std::move(again)]() mutable {
                          if (*alive) Run(std::move(again));
                        });
}

void PlanningLoop::OnFailure(const Batch& batch, const BatchResult& result) {
  const kube::KubeError& error = *result.error;
  const kube::NamespacedName key = KeyOf(batch.job.meta);
  Course& course = courses_.at(batch.job.meta.uid);
  if (error.code == ErrorCode::kConflict || error.code == ErrorCode::kNotFound) {
    // Decided on what is no more: the watch is about to tell. If what it tells is not understood,
    // that will not end.
    queue_.AddAfter(key, course.conflicts.Next(0));
    return;
  }
  if (error.code == ErrorCode::kCancelled) return;  // the lease is lost
  LogFailure(course, batch, error);
  // The server's refusals are told to the job's owner; what will pass is not.
  if (kube::IsRefusal(error)) {
    RememberRefusal(std::span(batch.actions).subspan(result.failed.value_or(0)), error.message,
                    options_.now(), parts_.table.Memory(batch.job.meta.uid));
    if (course.not_before == WallTime{}) course.backoff = Backoff(kRefusalBackoff);
  }
  Rest(key, course, DelayAfter(error, course.backoff));
}

// The job is left alone for so long.
void PlanningLoop::Rest(const kube::NamespacedName& key, Course& course, Duration time) {
  course.not_before = options_.now() + std::chrono::ceil<milliseconds>(time);
  queue_.AddAfter(key, time);
}

void PlanningLoop::LogFailure(Course& course, const Batch& batch, const Error& error) {
  if (std::exchange(course.last_error, error.message) == error.message) return;
  log::Warning("job could not be acted on",
               {{"job", JobOf(batch.job.meta)}, {"error", error.message}});
}

void PlanningLoop::RememberWrite(const Errand& errand, const BatchResult& result) {
  if (!errand.batch->write_status) return;
  const api::ElasticTrainingJob& job = errand.batch->job;
  JobMemory& memory = parts_.table.Memory(job.meta.uid);
  if (!result.job) {
    // Nothing was told: the next try is not to take it for old news.
    memory.told = errand.told_before;
    return;
  }
  if (!job.status.learners_asked) return;
  if (result.job->status.learners_asked) {
    memory.learners_asked_dropped.reset();
  } else if (std::exchange(memory.learners_asked_dropped, job.status.learners_asked) !=
             job.status.learners_asked) {
    log::Warning("the cluster's definition of ElasticTrainingJob is older than this operator",
                 {{"job", JobOf(job.meta)}, {"dropped", "status.learnersAsked"}});
  }
}

void PlanningLoop::RememberTemplateCheck(const Batch& batch, const BatchResult& result) {
  const bool unchecked = !result.template_unchecked.empty();
  if (!result.template_refusal && !unchecked) return;
  std::optional<TemplateCheck>& known = parts_.table.Memory(batch.job.meta.uid).template_check;
  const bool same = known && known->generation == batch.job.meta.generation;
  const int refusals = same ? known->refusals : 0;
  TemplateCheck check{.generation = batch.job.meta.generation};
  if (unchecked) {
    // The owner is told once why nothing happens; what the server has said before says more.
    if (same) return;
    check.unanswered = true;
    check.message = result.template_unchecked;
  } else if (result.template_refusal->empty()) {
    check.accepted = true;
    RememberAdmitted(batch.job, result.admitted_needs, parts_.table.Memory(batch.job.meta.uid));
    accepted_.Add(batch.job, result.admitted_needs, options_.now());
  } else {
    // What refused it (a quota, a policy, a missing class) may change without a word to us.
    check.message = *result.template_refusal;
    check.refusals = refusals + 1;
    check.again_at =
        options_.now() + std::min(seconds(10) * (1 << std::min(refusals, 10)), seconds(300));
  }
  known = std::move(check);
}

void PlanningLoop::Report() {
  int quarantined = 0;
  std::map<api::JobPhase, int> phases;
  for (const auto phase :
       {api::JobPhase::kQueued, api::JobPhase::kStarting, api::JobPhase::kRunning,
        api::JobPhase::kResizing, api::JobPhase::kRecovering, api::JobPhase::kSuspended,
        api::JobPhase::kSucceeded, api::JobPhase::kFailed}) {
    phases[phase] = 0;
  }
  for (const auto& [key, view] : views_) {
    if (!courses_.contains(view.job->meta.uid)) continue;  // it has just gone
    if (IsQuarantined(view)) ++quarantined;
    const api::JobPhase phase = view.job->status.phase;
    ++phases[phase == api::JobPhase::kNew ? api::JobPhase::kQueued : phase];
    if (view.job->status.finished()) {
      // Thousands of them may be kept.
      parts_.metrics.RemoveJob(key.ns, key.name);
      continue;
    }
    const planner::Decision* decision = DecisionOn(key);
    parts_.metrics.SetJob(FiguresOf(view, decision == nullptr ? planner::Decision{} : *decision));
  }
  parts_.metrics.SetJobsQuarantined(quarantined);
  for (const auto& [phase, count] : phases) {
    parts_.metrics.SetJobsInPhase(ToString(phase), count);
  }
}

}  // namespace pliant::controller
