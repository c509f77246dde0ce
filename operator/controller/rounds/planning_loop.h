#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/actions/batch_dispatcher.h"
#include "operator/controller/actions/job_table.h"
#include "operator/controller/coordinators/coordinator_monitor.h"
#include "operator/controller/lifecycle/job_events.h"
#include "operator/controller/lifecycle/job_lifecycle.h"
#include "operator/controller/model/speed_book.h"
#include "operator/controller/rounds/accepted_templates.h"
#include "operator/controller/rounds/cluster_plan.h"
#include "operator/controller/rounds/crash_notes.h"
#include "operator/controller/rounds/event_sink.h"
#include "operator/controller/rounds/leavers.h"
#include "operator/controller/rounds/orphans.h"
#include "operator/controller/rounds/placeholders.h"
#include "operator/controller/rounds/provisioning_requests.h"
#include "operator/controller/rounds/queue_reporter.h"
#include "operator/controller/rounds/rounds.h"
#include "operator/kube/work_queue.h"
#include "operator/metrics/metrics.h"

namespace pliant::controller {

// The objects for which a node autoscaler adds nodes.
enum class NodeRequestKind {
  kPlaceholders,  // pods, which any autoscaler finds
  kProvisioning,  // ProvisioningRequests of cluster-autoscaler
};

struct PlanningLoopOptions {
  LifecycleOptions lifecycle;
  planner::Policy policy;
  NodeRequestKind node_requests = NodeRequestKind::kPlaceholders;
  PlaceholderDefaults placeholders;
  RoundPacer::Options pace;
  FairCallsOptions pod_making_calls;  // shared fairly by namespaces
  std::int64_t lease_transitions = 0;
  std::function<WallTime()> now;
  std::function<bool()> clock_agrees = [] { return true; };  // `now`, with the API server's clock
  EventSink on_event;
};

// The parts that the loop uses; all outlive it.
struct PlanningLoopParts {
  EventLoop& loop;
  JobTable& table;
  const ActionRunner& runner;
  const StatusWriter& status_writer;
  kube::KubeClient& client;    // for objects for which nodes are added
  Executor api_calls;          // for the runner
  Executor pod_making_calls;   // also for the runner; apart, since admission webhooks may be slow
  Executor coordinator_calls;  // apart, since calls to a lost coordinator take long
  CoordinatorClient& coordinators;
  metrics::Metrics& metrics;
  CrashNotes* crash_notes = nullptr;  // null: nothing is noted
};

// Turns every change of the cluster into a plan for all jobs, and each job's part of it into
// actions: it passes changes, plans, decisions and results to the parts that handle them. It exists
// while its process is the leader. Control thread.
class PlanningLoop {
 public:
  PlanningLoop(PlanningLoopParts parts, PlanningLoopOptions options);
  PlanningLoop(const PlanningLoop&) = delete;
  PlanningLoop& operator=(const PlanningLoop&) = delete;

  // Called for changes in the stores.
  void OnJobChange(const kube::Store<api::ElasticTrainingJob>::Change& change);
  void OnPodChange(const kube::Store<api::Pod>::Change& change);
  void OnNodeChange(const kube::Store<api::Node>::Change& change);
  void OnServiceChange(const kube::Store<api::Service>::Change& change);
  void OnQuotaChange(const kube::Store<api::ResourceQuota>::Change& change);
  // A queue, a pool or a namespace: the table has it already.
  void OnQueueBookChange();

  // The last plan, and what it was made from.
  const planner::Plan& plan() const { return plan_.plan(); }
  const planner::ClusterSnapshot& snapshot() const { return plan_.snapshot(); }
  const planner::Policy& policy() const { return options_.policy; }
  // Updates the metrics of all jobs. Called before they are read.
  void Report();

 private:
  NodeRequestParts PartsOfNodeRequests();
  std::optional<WallTime> RunRound(WallTime now);
  void LookAtJobs(WallTime now);
  void LetLeave(const std::vector<kube::NamespacedName>& news, WallTime now);
  void LookAtJob(const kube::NamespacedName& key, JobView& view, WallTime now);
  void MakePlan(WallTime now);
  std::optional<WallTime> RequestNodes(const PlannedCluster& cluster, WallTime now);
  void Reconcile(const JobView& view, const std::optional<JobPlan>& plan, WallTime now);
  void WriteQuarantineStatus(const JobView& view, WallTime now);
  void FollowCoordinator(const JobView& view);
  void Dispatch(const JobView& view, Outcome outcome, const LastReported& reported_before);
  void OnResult(const BatchOrder& order, const BatchResult& result, Duration took);
  void TellOfReclaim(const BatchOrder& order, const api::JobStatus& after);
  void LookAt(const std::set<kube::NamespacedName>& jobs);

  const PlanningLoopParts parts_;
  const PlanningLoopOptions options_;
  JobTable::Views& views_;
  kube::WorkQueue queue_;
  CoordinatorMonitor monitor_;
  BatchDispatcher dispatcher_;
  Leavers leavers_;
  AcceptedTemplates accepted_;
  SpeedBook speeds_;
  std::map<std::string, std::int64_t> gpus_of_node_;  // by pool: of its largest node
  ClusterPlan plan_;
  QueueReporter queue_reporter_;
  Placeholders placeholders_;
  ProvisioningRequests provisioning_;
  Orphans orphans_;
  std::uint64_t book_version_ = 0;
  Rounds rounds_;
};

}  // namespace pliant::controller
