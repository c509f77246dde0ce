#include "operator/metrics/metrics.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace pliant::metrics {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

using Labels = std::map<std::string, std::string>;

const Histogram::BucketBoundaries kSeconds{1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1,
                                           0.5,  1,    2.5,  5,    10,   60};

Family<Counter>& CounterFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Gauge>& GaugeFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Histogram>& HistogramFamily(prometheus::Registry& registry, const char* name,
                                   const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

const Labels kQueue{{"name", "jobs"}, {"controller", "jobs"}};
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

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;

  Family<Gauge>& leader = GaugeFamily(registry, "leader_election_master_status",
                                      "1 on the replica that leads, 0 on the others.");
  Family<Counter>& requests =
      CounterFamily(registry, "rest_client_requests_total",
                    "Requests to the API server, by method and status code.");
  Family<Histogram>& request_seconds =
      HistogramFamily(registry, "rest_client_request_duration_seconds",
                      "Duration of requests to the API server, by method.");
  Family<Counter>& reflector_restarts =
      CounterFamily(registry, "pliant_reflector_restarts_total",
                    "Times that objects had to be listed or watched anew, by kind and reason.");

  Family<Gauge>& queue_depth =
      GaugeFamily(registry, "workqueue_depth", "Jobs that wait for a decision.");
  Family<Counter>& queue_adds =
      CounterFamily(registry, "workqueue_adds_total", "Jobs that were queued for a decision.");
  Family<Counter>& queue_retries = CounterFamily(registry, "workqueue_retries_total",
                                                 "Jobs that were queued again after a failure.");
  Family<Histogram>& queue_seconds = HistogramFamily(registry, "workqueue_queue_duration_seconds",
                                                     "How long a job waited for a decision.");
  Family<Histogram>& work_seconds =
      HistogramFamily(registry, "workqueue_work_duration_seconds",
                      "How long deciding on a job, and acting on it, took.");

  Family<Counter>& reconciles = CounterFamily(registry, "controller_runtime_reconcile_total",
                                              "Decisions on jobs, by result.");
  Family<Counter>& reconcile_errors =
      CounterFamily(registry, "controller_runtime_reconcile_errors_total",
                    "Decisions that could not be acted on.");
  Family<Histogram>& reconcile_seconds = HistogramFamily(
      registry, "controller_runtime_reconcile_time_seconds", "How long acting on a decision took.");

  Family<Histogram>& plan_seconds = HistogramFamily(registry, "pliant_plan_duration_seconds",
                                                    "How long one plan for all jobs took.");
  Family<Gauge>& capacity =
      GaugeFamily(registry, "pliant_gpus_capacity", "GPUs that there are to share.");
  Family<Gauge>& allocated =
      GaugeFamily(registry, "pliant_job_gpus_allocated", "GPUs that a job's learners hold.");
  Family<Gauge>& desired =
      GaugeFamily(registry, "pliant_job_gpus_desired", "GPUs that the plan gives a job.");
  Family<Gauge>& entitlement =
      GaugeFamily(registry, "pliant_job_entitlement_gpus", "GPUs that are fair for a job.");
  Family<Gauge>& step = GaugeFamily(registry, "pliant_job_step", "Last committed step of a job.");
  Family<Gauge>& restarts = GaugeFamily(registry, "pliant_job_restarts",
                                        "Learners of a job that were replaced after a failure.");
  Family<Gauge>& resizes =
      GaugeFamily(registry, "pliant_job_resizes", "Changes of a job's size while it trained.");
  Family<Gauge>& phases = GaugeFamily(registry, "pliant_jobs", "Jobs, by phase.");
  Family<Counter>& coordinator_calls = CounterFamily(registry, "pliant_coordinator_requests_total",
                                                     "Requests to jobs' coordinators, by result.");
  Family<Gauge>& events_dropped =
      GaugeFamily(registry, "pliant_events_dropped", "Events that were never written.");

  struct JobSeries {
    Gauge& allocated;
    Gauge& desired;
    Gauge& entitlement;
    Gauge& step;
    Gauge& restarts;
    Gauge& resizes;
  };
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, JobSeries> jobs;  // guarded by mutex
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

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
void Metrics::OnQueueRetry() { families_->queue_retries.Add(kQueue).Increment(); }
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
  families_->plan_seconds.Add({}, kSeconds).Observe(ToSeconds(took));
  families_->capacity.Add({}).Set(static_cast<double>(capacity_gpus));
}

void Metrics::SetJob(const JobFigures& job) {
  const std::lock_guard lock(families_->mutex);
  const Labels labels{{"namespace", job.name_space}, {"job", job.name}};
  auto [place, added] = families_->jobs.try_emplace(
      {job.name_space, job.name},
      Families::JobSeries{families_->allocated.Add(labels), families_->desired.Add(labels),
                          families_->entitlement.Add(labels), families_->step.Add(labels),
                          families_->restarts.Add(labels), families_->resizes.Add(labels)});
  Families::JobSeries& series = place->second;
  series.allocated.Set(static_cast<double>(job.allocated_gpus));
  series.desired.Set(static_cast<double>(job.desired_gpus));
  series.entitlement.Set(static_cast<double>(job.entitlement_gpus));
  series.step.Set(static_cast<double>(job.step));
  series.restarts.Set(static_cast<double>(job.restarts));
  series.resizes.Set(static_cast<double>(job.resizes));
}

void Metrics::RemoveJob(const std::string& name_space, const std::string& name) {
  const std::lock_guard lock(families_->mutex);
  const auto found = families_->jobs.find({name_space, name});
  if (found == families_->jobs.end()) return;
  const Families::JobSeries& series = found->second;
  families_->allocated.Remove(&series.allocated);
  families_->desired.Remove(&series.desired);
  families_->entitlement.Remove(&series.entitlement);
  families_->step.Remove(&series.step);
  families_->restarts.Remove(&series.restarts);
  families_->resizes.Remove(&series.resizes);
  families_->jobs.erase(found);
}

void Metrics::SetJobsInPhase(std::string_view phase, int count) {
  families_->phases.Add({{"phase", std::string(phase)}}).Set(count);
}

void Metrics::OnCoordinatorCall(std::string_view code) {
  families_->coordinator_calls.Add({{"code", std::string(code)}}).Increment();
}

void Metrics::SetEventsDropped(std::uint64_t dropped) {
  families_->events_dropped.Add({}).Set(static_cast<double>(dropped));
}

}  // namespace pliant::metrics
