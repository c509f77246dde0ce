#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/metric_family.h"

namespace pliant::metrics {

// The metrics of one job. Its series are removed with it.
struct JobStats {
  std::string name_space;
  std::string name;
  int priority = 0;
  std::int64_t allocated_gpus = 0;    // held by its learners
  std::int64_t desired_gpus = 0;      // granted to it by the plan
  std::int64_t entitlement_gpus = 0;  // its fair share
  std::int64_t demand_gpus = 0;       // that it could use now
  std::int64_t step = 0;
  std::int64_t restarts = 0;  // since the job was created; so is the next
  std::int64_t resizes = 0;
  std::optional<double> waiting_since;  // Unix seconds; absent: it does not wait for GPUs
  // Its speed with the learners that it holds, by learner and relative to its speed with one
  // learner; absent: not measured.
  std::optional<double> efficiency;
  std::map<int, double> samples_per_second;  // measured, by the number of learners
};

// The metrics of one queue, in GPUs.
struct QueueStats {
  std::string name;
  std::string pool;
  std::int64_t guaranteed = 0;
  std::int64_t demand = 0;
  std::int64_t entitled = 0;
  std::int64_t allocated = 0;
  std::int64_t borrowed = 0;
  std::int64_t lent = 0;
  std::int64_t running = 0;  // jobs
  std::int64_t waiting = 0;  // jobs
};

// The metrics of one pool, in GPUs.
struct PoolStats {
  std::string name;
  std::int64_t capacity = 0;
  std::int64_t allocated = 0;
  std::int64_t foreign = 0;
};

// Pods of one namespace whose jobs are gone.
struct OrphanStats {
  std::string name_space;
  std::int64_t gpus = 0;
};

enum class ReconcileResult { kSuccess, kError, kRequeue };

// Every metric of the operator (docs/metrics.md). Names are those of client-go and
// controller-runtime where these have one, so that existing dashboards work. Users choose no label
// except a job's namespace and name; administrators choose the names of queues and pools. There are
// no metrics per pod or node: other exporters have those. Any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // All metrics in Prometheus' text format.
  std::string Text() const;
  std::vector<MetricFamily> families() const;

  void SetLeader(const std::string& lease, bool leads);
  void OnRequest(std::string_view method, std::string_view code, Duration took);
  void OnReflectorRestart(std::string_view kind, std::string_view reason);

  void OnQueueAdd();
  void OnQueueTake(Duration waited);
  void OnQueueDone(Duration worked);
  void SetQueueDepth(std::size_t depth);

  void OnReconcile(ReconcileResult result, Duration took);
  void OnPlan(Duration took, std::int64_t capacity_gpus);
  void SetJob(const JobStats& job);
  // For a job that has ended or was deleted. Idempotent.
  void RemoveJob(const std::string& name_space, const std::string& name);
  // All queues and all pools: series of others are removed.
  void SetQueues(std::vector<QueueStats> queues);
  void SetPools(std::vector<PoolStats> pools);
  void SetOrphans(std::vector<OrphanStats> orphans);  // of all namespaces that have some
  void SetJobsQuarantined(int count);
  void SetJobsInPhase(std::string_view phase, int count);
  // Jobs that wait for GPUs, by the code of the plan's reason; all others have none.
  void SetJobsWaiting(const std::map<std::string_view, int>& by_reason);
  // A job of `queue` lost all GPUs, because they are guaranteed to queue `taker`.
  void OnQueueEviction(const std::string& queue, const std::string& taker);
  // A job got GPUs after it had waited for them.
  void OnWaitEnded(Duration waited);
  void OnCoordinatorCall(std::string_view result);
  void SetEventsDropped(std::uint64_t dropped);
  void SetNamespacesRefused(std::size_t namespaces);
  void SetClockAhead(double seconds);
  void SetHeap(std::size_t bytes);

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace pliant::metrics
