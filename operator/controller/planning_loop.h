#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "operator/controller/accepted_templates.h"
#include "operator/controller/action_runner.h"
#include "operator/controller/coordinator_monitor.h"
#include "operator/controller/crash_notes.h"
#include "operator/controller/fair_calls.h"
#include "operator/controller/job_events.h"
#include "operator/controller/job_lifecycle.h"
#include "operator/controller/job_table.h"
#include "operator/controller/round_pacer.h"
#include "operator/controller/snapshot_builder.h"
#include "operator/controller/workers.h"
#include "operator/kube/work_queue.h"
#include "operator/metrics/metrics.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

struct PlanningLoopOptions {
  LifecycleOptions lifecycle;
  planner::Policy policy;
  RoundPacer::Options pace;
  FairCallsOptions pod_making_calls;  // shared by namespaces
  std::int64_t lease_transitions = 0;
  std::function<WallTime()> now;
  std::function<bool()> clock_agrees = [] { return true; };  // `now`, with the API server's
  std::function<void(const api::ObjectMeta& job, const JobEvent& event)> on_event;
};

// What the loop does with the world; all outlive it.
struct PlanningLoopParts {
  EventLoop& loop;
  JobTable& table;
  const ActionRunner& runner;
  Executor api_calls;          // for the runner
  Executor pod_making_calls;   // for it too: apart, because admission webhooks may make them last
  Executor coordinator_calls;  // apart, because a coordinator that is gone makes a call last
  CoordinatorClient& coordinators;
  metrics::Metrics& metrics;
  CrashNotes* crash_notes = nullptr;  // null: nothing is noted
};

// Lets every change of the cluster lead to a plan for all jobs, and each job's part of it to
// actions. It exists while its process leads. Control thread; one batch of actions at a time for
// each job.
class PlanningLoop {
 public:
  PlanningLoop(PlanningLoopParts parts, PlanningLoopOptions options);
  ~PlanningLoop();
  PlanningLoop(const PlanningLoop&) = delete;
  PlanningLoop& operator=(const PlanningLoop&) = delete;

  // What the stores tell.
  void OnJobChange(const kube::Store<api::ElasticTrainingJob>::Change& change);
  void OnPodChange(const kube::Store<api::Pod>::Change& change);
  void OnNodeChange(const kube::Store<api::Node>::Change& change);
  void OnServiceChange(const kube::Store<api::Service>::Change& change);
  void OnQuotaChange(const kube::Store<api::ResourceQuota>::Change& change);

  // What was planned from last.
  const planner::ClusterSnapshot& snapshot() const { return builder_.snapshot(); }
  // Brings the figures of all jobs in the metrics up to date: for whoever is about to read them.
  void Report();

 private:
  // What the loop itself keeps of a job.
  struct Course {
    kube::NamespacedName key;
    Backoff backoff;
    Backoff conflicts;
    WallTime not_before;     // after a failure
    std::string last_error;  // as it was logged
  };

  // A batch under way.
  struct Errand {
    std::shared_ptr<const Batch> batch;
    bool clears = false;                                    // asks what has become of it
    bool unanswered = false;                                // which the job's owner is told
    std::shared_ptr<const api::ElasticTrainingJob> before;  // on which it was decided
    Told told_before;
    std::optional<WallTime> look_again;
    std::optional<Duration> wait_ended;  // of a job that is given its first GPUs by it
    TimePoint began{};
  };

  void RequestRound();
  void Round();
  void LookAtJobs(WallTime now);
  bool IsQuarantined(const JobView& view) const;
  void PlanAlone(const JobView& view, WallTime now);
  void TellOfQuarantine(const JobView& view, WallTime now);
  void MakePlan(WallTime now);
  void QueueNews(WallTime now);
  const planner::Decision* DecisionOn(const kube::NamespacedName& job) const;
  std::optional<JobPlan> PlanOf(const kube::NamespacedName& job) const;
  void Reconcile(const JobView& view, const std::optional<JobPlan>& plan, WallTime now);
  void Dispatch(const JobView& view, Outcome outcome, const Told& told_before);
  void Run(Errand errand);
  void OnDone(const Errand& errand, const BatchResult& result);
  void Clear(const Errand& errand, const BatchResult& result);
  void Rest(const kube::NamespacedName& key, Course& course, Duration time);
  void LogFailure(Course& course, const Batch& batch, const Error& error);
  void OnFailure(const Batch& batch, const BatchResult& result);
  void RememberWrite(const Errand& errand, const BatchResult& result);
  void RememberTemplateCheck(const Batch& batch, const BatchResult& result);
  void FollowCoordinator(const JobView& view, const Outcome& outcome);
  void ForgetJob(const std::string& job_uid);
  void LookAt(const std::set<kube::NamespacedName>& jobs);
  void LookAgain(const kube::NamespacedName& key, const std::optional<WallTime>& at);

  const PlanningLoopParts parts_;
  const PlanningLoopOptions options_;
  CoordinatorMonitor monitor_;
  FairCalls pod_making_calls_;
  kube::WorkQueue queue_;
  std::map<std::string, Course> courses_;  // by job uid
  JobTable::Views& views_;
  SnapshotBuilder builder_;
  planner::FitMemory fits_;
  AcceptedTemplates accepted_;
  planner::Plan plan_;  // of the last round
  TimerId round_timer_ = 0;
  TimerId again_timer_ = 0;
  RoundPacer pacer_;
  std::shared_ptr<bool> alive_;  // results that come after the loop are dropped
};

}  // namespace pliant::controller
