#include "operator/metrics/metrics.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "base/metric_registry.h"

namespace pliant::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricType;

const Histogram::BucketBoundaries kSeconds{1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1,
                                           0.5,  1,    2.5,  5,    10,   60};
const Histogram::BucketBoundaries kPlanSeconds{1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.03,
                                               0.05, 0.07, 0.1,  0.2,  0.5,  1,    5};
const Histogram::BucketBoundaries kWaitSeconds{1,   5,    15,       60,        300,
                                               900, 3600, 3 * 3600, 12 * 3600, 48 * 3600};

const Labels kQueue{{"name", "jobs"}, {"controller", "jobs"}};
constexpr const char* kQueueLabel = "queue";
constexpr const char* kPoolLabel = "pool";
constexpr const char* kStateLabel = "state";
constexpr const char* kLearnersLabel = "learners";
const Labels kController{{"controller", "jobs"}};

const char* NameOf(ReconcileResult result) {
  switch (result) {
    case ReconcileResult::kSuccess:
      return "success";
    case ReconcileResult::kError:
      return "error";
    case ReconcileResult::kRequeue:
      return "requeue";
  }
  return "";
}

// A metric of each job, queue or pool. Its value may be absent.
template <typename Stats>
struct Series {
  const char* name;
  MetricType type;
  const char* help;
  std::optional<double> (*value)(const Stats& stats);
};
using JobSeries = Series<JobStats>;

template <auto kMember, typename Stats>
std::optional<double> ValueOf(const Stats& stats) {
  return static_cast<double>(stats.*kMember);
}

constexpr JobSeries kJobSeries[] = {
    {"pliant_job_allocated_gpus", MetricType::Gauge, "GPUs that a job's learners hold.",
     ValueOf<&JobStats::allocated_gpus>},
    {"pliant_job_desired_gpus", MetricType::Gauge, "GPUs that the plan assigns to a job.",
     ValueOf<&JobStats::desired_gpus>},
    {"pliant_job_entitlement_gpus", MetricType::Gauge, "GPUs in the fair share of a job.",
     ValueOf<&JobStats::entitlement_gpus>},
    {"pliant_job_demand_gpus", MetricType::Gauge, "GPUs that a job could use now.",
     ValueOf<&JobStats::demand_gpus>},
    {"pliant_job_priority", MetricType::Gauge, "Priority of a job.", ValueOf<&JobStats::priority>},
    {"pliant_job_step", MetricType::Gauge, "Last committed step of a job.",
     ValueOf<&JobStats::step>},
    {"pliant_job_waiting_since_timestamp_seconds", MetricType::Gauge,
     "Unix time since when a job has waited for its first GPU; absent while it does not wait.",
     [](const JobStats& job) { return job.waiting_since; }},
    {"pliant_job_restarts_total", MetricType::Counter,
     "Learners of a job that were replaced after a failure, since the job was created.",
     ValueOf<&JobStats::restarts>},
    {"pliant_job_resizes_total", MetricType::Counter,
     "Resizes of a job while it trained, since the job was created.", ValueOf<&JobStats::resizes>},
    {"pliant_job_efficiency", MetricType::Gauge,
     "Speed of a job with its present learners, by learner, as a part of its speed with one "
     "learner; absent until it was measured.",
     [](const JobStats& job) { return job.efficiency; }},
};

constexpr Series<QueueStats> kQueueSeries[] = {
    {"pliant_queue_guaranteed_gpus", MetricType::Gauge,
     "GPUs that a queue gets back whenever it can use them.", ValueOf<&QueueStats::guaranteed>},
    {"pliant_queue_demand_gpus", MetricType::Gauge,
     "GPUs that the jobs of a queue could use now, as far as its limit allows.",
     ValueOf<&QueueStats::demand>},
    {"pliant_queue_entitled_gpus", MetricType::Gauge, "GPUs in the fair share of a queue.",
     ValueOf<&QueueStats::entitled>},
    {"pliant_queue_allocated_gpus", MetricType::Gauge,
     "GPUs that the plan assigns to the jobs of a queue.", ValueOf<&QueueStats::allocated>},
    {"pliant_queue_borrowed_gpus", MetricType::Gauge,
     "GPUs of a queue that are guaranteed to queues which do not use them now.",
     ValueOf<&QueueStats::borrowed>},
    {"pliant_queue_lent_gpus", MetricType::Gauge,
     "GPUs that are guaranteed to a queue and assigned to jobs of others.",
     ValueOf<&QueueStats::lent>},
};

constexpr Series<PoolStats> kPoolSeries[] = {
    {"pliant_pool_capacity_gpus", MetricType::Gauge,
     "GPUs of a pool available to jobs, including those that they hold.",
     ValueOf<&PoolStats::capacity>},
    {"pliant_pool_allocated_gpus", MetricType::Gauge,
     "GPUs of a pool that the plan assigns to jobs.", ValueOf<&PoolStats::allocated>},
    {"pliant_pool_foreign_gpus", MetricType::Gauge, "GPUs of a pool that other pods use.",
     ValueOf<&PoolStats::foreign>},
};

constexpr Series<OrphanStats> kOrphanSeries[] = {
    {"pliant_orphaned_gpus", MetricType::Gauge, "GPUs that pods hold whose job is gone.",
     ValueOf<&OrphanStats::gpus>},
};

std::vector<prometheus::ClientMetric::Label> LabelsOf(const JobStats& job) {
  return {{kJobNameLabel, job.name}, {kJobNamespaceLabel, job.name_space}};
}
std::vector<prometheus::ClientMetric::Label> LabelsOf(const QueueStats& queue) {
  return {{kPoolLabel, queue.pool}, {kQueueLabel, queue.name}};
}
std::vector<prometheus::ClientMetric::Label> LabelsOf(const PoolStats& pool) {
  return {{kPoolLabel, pool.name}};
}
std::vector<prometheus::ClientMetric::Label> LabelsOf(const OrphanStats& orphans) {
  return {{kJobNamespaceLabel, orphans.name_space}};
}

}  // namespace

struct Metrics::Families {
  using Counters = MetricRegistry::Counters;
  using Gauges = MetricRegistry::Gauges;
  using Histograms = MetricRegistry::Histograms;

  MetricRegistry registry;

  Gauges& leader = registry.AddGauges("leader_election_master_status", {"name"},
                                      "1 on the replica that leads, 0 on the others.");
  Counters& requests =
      registry.AddCounters("rest_client_requests_total", {"code", "method"},
                           "Requests to the API server, by method and status code.");
  Histograms& request_seconds =
      registry.AddHistograms("rest_client_request_duration_seconds", {"verb"},
                             "Duration of requests to the API server, by method.");
  Counters& reflector_restarts =
      registry.AddCounters("pliant_reflector_restarts_total", {"kind", "reason"},
                           "Lists and watches that had to be started again, by kind and reason.");

  Gauges& queue_depth = registry.AddGauges("workqueue_depth", {"controller", "name"},
                                           "Jobs that wait for a decision.");
  Counters& queue_adds = registry.AddCounters("workqueue_adds_total", {"controller", "name"},
                                              "Jobs that were queued for a decision.");
  Histograms& queue_seconds =
      registry.AddHistograms("workqueue_queue_duration_seconds", {"controller", "name"},
                             "How long a job waited for a decision.");
  Histograms& work_seconds =
      registry.AddHistograms("workqueue_work_duration_seconds", {"controller", "name"},
                             "Time to decide on a job and to act on the decision.");

  Counters& reconciles =
      registry.AddCounters("controller_runtime_reconcile_total", {"controller", "result"},
                           "Decisions on jobs that were acted on, by result.");
  Counters& reconcile_errors =
      registry.AddCounters("controller_runtime_reconcile_errors_total", {"controller"},
                           "Decisions that could not be acted on.");
  Histograms& reconcile_seconds = registry.AddHistograms(
      "controller_runtime_reconcile_time_seconds", {"controller"}, "Time to act on a decision.");

  Histograms& plan_seconds = registry.AddHistograms("pliant_plan_duration_seconds", {},
                                                    "Time to make one plan for all jobs.");
  Gauges& capacity = registry.AddGauges("pliant_capacity_gpus", {},
                                        "GPUs available to jobs, including those that they hold.");
  Gauges& phases = registry.AddGauges("pliant_jobs", {"phase"}, "Jobs, by phase.");
  Gauges& jobs_waiting = registry.AddGauges("pliant_jobs_waiting", {"reason"},
                                            "Jobs that wait for GPUs, by the plan's reason.");
  Counters& queue_evictions = registry.AddCounters(
      "pliant_queue_evictions_total", {"for", "queue"},
      "Jobs of a queue that lost all GPUs, because they are guaranteed to another queue.");
  Histograms& wait_seconds =
      registry.AddHistograms("pliant_job_wait_seconds", {},
                             "How long jobs waited for their first GPU after they were submitted, "
                             "resumed or queued again.");
  Counters& coordinator_calls =
      registry.AddCounters("pliant_coordinator_requests_total", {"result"},
                           "Requests to jobs' coordinators, by result.");
  Counters& events_dropped = registry.AddCounters(
      "pliant_events_dropped_total", {}, "Kubernetes events that were dropped and never written.");
  Gauges& jobs_quarantined = registry.AddGauges(
      "pliant_jobs_quarantined", {},
      "Jobs that the operator does not process because it crashed twice while processing them.");
  Gauges& namespaces_refused = registry.AddGauges(
      "pliant_watched_namespaces_refused", {},
      "Watched namespaces that the API server denies access to; their jobs are not processed.");
  Gauges& clock_ahead = registry.AddGauges("pliant_clock_ahead_seconds", {},
                                           "How far the operator's clock is ahead of the API "
                                           "server's; 0 within the error of measurement.");
  Gauges& heap =
      registry.AddGauges("pliant_heap_bytes", {},
                         "Memory that the operator has allocated and not freed, without memory "
                         "that the allocator keeps for reuse, except about 200 KiB per thread.");

  Families() {
    for (const JobSeries& series : kJobSeries) {
      registry.AddCollected(
          series.name, series.type, {kJobNamespaceLabel, kJobNameLabel}, series.help,
          [this, &series] { return Collect(series, [this] { return std::views::values(jobs); }); });
    }
    registry.AddCollected("pliant_job_measured_samples_per_second", MetricType::Gauge,
                          {kJobNamespaceLabel, kJobNameLabel, kLearnersLabel},
                          "Measured speed of a job, by its number of learners.",
                          [this] { return CollectSpeeds(); });
    for (const Series<QueueStats>& series : kQueueSeries) {
      registry.AddCollected(
          series.name, series.type, {kPoolLabel, kQueueLabel}, series.help,
          [this, &series] { return Collect(series, [this] { return std::views::all(queues); }); });
    }
    registry.AddCollected("pliant_queue_jobs", MetricType::Gauge,
                          {kPoolLabel, kQueueLabel, kStateLabel},
                          "Jobs of a queue that have GPUs, and that wait for them.",
                          [this] { return CollectQueueJobs(); });
    for (const Series<PoolStats>& series : kPoolSeries) {
      registry.AddCollected(series.name, series.type, {kPoolLabel}, series.help, [this, &series] {
        return Collect(series, [this] { return std::views::all(pools); });
      });
    }
    for (const Series<OrphanStats>& series : kOrphanSeries) {
      registry.AddCollected(
          series.name, series.type, {kJobNamespaceLabel}, series.help,
          [this, &series] { return Collect(series, [this] { return std::views::all(orphans); }); });
    }
  }

  // `all_stats` is called under the mutex.
  template <typename Stats, typename AllStats>
  std::vector<ClientMetric> Collect(const Series<Stats>& series, AllStats all_stats) {
    const std::lock_guard lock(mutex);
    std::vector<ClientMetric> all;
    for (const Stats& stats : all_stats()) {
      const std::optional<double> value = series.value(stats);
      if (!value) continue;
      ClientMetric& metric = all.emplace_back();
      metric.label = LabelsOf(stats);
      (series.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
    }
    return all;
  }

  std::vector<ClientMetric> CollectQueueJobs() {
    const std::lock_guard lock(mutex);
    std::vector<ClientMetric> all;
    for (const QueueStats& queue : queues) {
      for (const auto& [state, jobs_in_state] :
           {std::pair{"running", queue.running}, std::pair{"waiting", queue.waiting}}) {
        ClientMetric& metric = all.emplace_back();
        metric.label = LabelsOf(queue);
        metric.label.push_back({kStateLabel, state});
        metric.gauge.value = static_cast<double>(jobs_in_state);
      }
    }
    return all;
  }

  std::vector<ClientMetric> CollectSpeeds() {
    const std::lock_guard lock(mutex);
    std::vector<ClientMetric> all;
    for (const JobStats& job : std::views::values(jobs)) {
      for (const auto& [learners, speed] : job.samples_per_second) {
        ClientMetric& metric = all.emplace_back();
        metric.label = LabelsOf(job);
        metric.label.push_back({kLearnersLabel, std::to_string(learners)});
        metric.gauge.value = speed;
      }
    }
    return all;
  }

  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, JobStats> jobs;  // guarded by mutex
  std::vector<QueueStats> queues;                                // guarded by mutex
  std::vector<PoolStats> pools;
  std::vector<OrphanStats> orphans;  // guarded by mutex
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {
  families_->wait_seconds.Add({}, kWaitSeconds);
}
Metrics::~Metrics() = default;

std::string Metrics::Text() const { return families_->registry.Text(); }
std::vector<MetricFamily> Metrics::families() const { return families_->registry.families(); }

void Metrics::SetLeader(const std::string& lease, bool leads) {
  families_->leader.Add({{"name", lease}}).Set(leads ? 1 : 0);
}

void Metrics::OnRequest(std::string_view method, std::string_view code, Duration took) {
  families_->requests.Add({{"method", std::string(method)}, {"code", std::string(code)}})
      .Increment();
  families_->request_seconds.Add({{"verb", std::string(method)}}, kSeconds)
      .Observe(ToSeconds(took));
}

void Metrics::OnReflectorRestart(std::string_view kind, std::string_view reason) {
  families_->reflector_restarts.Add({{"kind", std::string(kind)}, {"reason", std::string(reason)}})
      .Increment();
}

void Metrics::OnQueueAdd() { families_->queue_adds.Add(kQueue).Increment(); }
void Metrics::OnQueueTake(Duration waited) {
  families_->queue_seconds.Add(kQueue, kSeconds).Observe(ToSeconds(waited));
}
void Metrics::OnQueueDone(Duration worked) {
  families_->work_seconds.Add(kQueue, kSeconds).Observe(ToSeconds(worked));
}
void Metrics::SetQueueDepth(std::size_t depth) {
  families_->queue_depth.Add(kQueue).Set(static_cast<double>(depth));
}

void Metrics::OnReconcile(ReconcileResult result, Duration took) {
  families_->reconciles.Add({{"controller", "jobs"}, {"result", NameOf(result)}}).Increment();
  if (result == ReconcileResult::kError) families_->reconcile_errors.Add(kController).Increment();
  families_->reconcile_seconds.Add(kController, kSeconds).Observe(ToSeconds(took));
}

void Metrics::OnPlan(Duration took, std::int64_t capacity_gpus) {
  families_->plan_seconds.Add({}, kPlanSeconds).Observe(ToSeconds(took));
  families_->capacity.Add({}).Set(static_cast<double>(capacity_gpus));
}

void Metrics::SetJob(const JobStats& job) {
  const std::lock_guard lock(families_->mutex);
  JobStats& known = families_->jobs[{job.name_space, job.name}];
  const auto [restarts, resizes] = std::pair(known.restarts, known.resizes);
  known = job;
  known.restarts = std::max(job.restarts, restarts);
  known.resizes = std::max(job.resizes, resizes);
}

void Metrics::RemoveJob(const std::string& name_space, const std::string& name) {
  const std::lock_guard lock(families_->mutex);
  families_->jobs.erase({name_space, name});
}

void Metrics::SetQueues(std::vector<QueueStats> queues) {
  const std::lock_guard lock(families_->mutex);
  families_->queues = std::move(queues);
}

void Metrics::SetPools(std::vector<PoolStats> pools) {
  const std::lock_guard lock(families_->mutex);
  families_->pools = std::move(pools);
}

void Metrics::SetOrphans(std::vector<OrphanStats> orphans) {
  const std::lock_guard lock(families_->mutex);
  families_->orphans = std::move(orphans);
}

void Metrics::SetJobsInPhase(std::string_view phase, int count) {
  families_->phases.Add({{"phase", std::string(phase)}}).Set(count);
}

void Metrics::SetJobsWaiting(const std::map<std::string_view, int>& by_reason) {
  for (const auto& [reason, count] : by_reason)
    families_->jobs_waiting.Add({{"reason", std::string(reason)}}).Set(count);
}

void Metrics::OnQueueEviction(const std::string& queue, const std::string& taker) {
  families_->queue_evictions.Add({{kQueueLabel, queue}, {"for", taker}}).Increment();
}

void Metrics::OnWaitEnded(Duration waited) {
  families_->wait_seconds.Add({}, kWaitSeconds).Observe(ToSeconds(waited));
}

void Metrics::OnCoordinatorCall(std::string_view result) {
  families_->coordinator_calls.Add({{"result", std::string(result)}}).Increment();
}

void Metrics::SetEventsDropped(std::uint64_t dropped) {
  SetAtLeast(families_->events_dropped.Add({}), static_cast<double>(dropped));
}

void Metrics::SetJobsQuarantined(int count) {
  families_->jobs_quarantined.Add({}).Set(static_cast<double>(count));
}

void Metrics::SetNamespacesRefused(std::size_t namespaces) {
  families_->namespaces_refused.Add({}).Set(static_cast<double>(namespaces));
}

void Metrics::SetClockAhead(double seconds) { families_->clock_ahead.Add({}).Set(seconds); }

void Metrics::SetHeap(std::size_t bytes) {
  families_->heap.Add({}).Set(static_cast<double>(bytes));
}

}  // namespace pliant::metrics
