#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/actions/job_table.h"
#include "operator/controller/actions/retry_state.h"
#include "operator/controller/calls/executor.h"
#include "operator/controller/calls/fair_calls.h"
#include "operator/controller/model/reporting.h"
#include "operator/kube/work_queue.h"

namespace pliant::controller {

// An order to carry out a decision on one job.
struct BatchOrder {
  std::shared_ptr<const Batch> batch;
  std::shared_ptr<const api::ElasticTrainingJob> job_before;  // that the decision used
  LastReported reported_before;                               // before this write of status
  std::optional<WallTime> look_again;  // after the batch is done, by this time
  std::optional<Duration> wait_ended;  // the job's wait, if this batch ends it
  std::string reclaimed_by;            // queue that the job's GPUs go to; "": it is not evicted
};

// All outlive the dispatcher.
struct BatchDispatcherParts {
  EventLoop& loop;
  JobTable& table;
  kube::WorkQueue& queue;
  const ActionRunner& runner;
  Executor api_calls;         // for the runner
  Executor pod_making_calls;  // also for the runner; apart, since admission webhooks may be slow
};

struct BatchDispatcherOptions {
  FairCallsOptions pod_making_calls;  // shared fairly by namespaces
  Duration first_conflict_delay{};
  std::function<WallTime()> now;
  // Called when a batch was tried or its outcome was queried, even if the job is gone. `took`:
  // since the order.
  std::function<void(const BatchOrder& order, const BatchResult& result, Duration took)> on_result;
};

// Carries out decisions on jobs, one batch at a time for each job, and decides when to retry. In
// the table a batch counts as done once begun, and its result is recorded there in the job's soft
// state. The job stays taken from the queue until its batch has ended. Control thread.
class BatchDispatcher {
 public:
  BatchDispatcher(BatchDispatcherParts parts, BatchDispatcherOptions options);
  BatchDispatcher(const BatchDispatcher&) = delete;
  BatchDispatcher& operator=(const BatchDispatcher&) = delete;

  // Called when a job appears, and when it is gone from the stores. A batch of a forgotten job is
  // not retried: a new job of its name waits only for the answer to a request already sent. Adding
  // a job again changes nothing.
  void AddJob(const std::string& job_uid, const kube::NamespacedName& key);
  void ForgetJob(const std::string& job_uid);
  // Null: the job is gone, or was not added.
  const kube::NamespacedName* KeyOfJob(const std::string& job_uid) const;
  // Until when an added job backs off after a failure; nullopt: it does not.
  struct Rests {
    std::optional<WallTime> all;
    std::optional<WallTime> serving;  // only with actions that serve learners
  };
  Rests RestsOf(const std::string& job_uid, WallTime now) const;

  void Dispatch(BatchOrder order);

 private:
  struct Try {
    BatchOrder order;
    std::shared_ptr<const Batch> batch;  // the order's, or its one action of unknown outcome
    bool resolves = false;               // only finds the outcome of that action
    bool unanswered_before = false;      // the server did not answer the try before
    TimePoint ordered{};
  };
  // The wait before the outcome of an action is queried.
  struct Wait {
    TimerId timer = 0;
    std::shared_ptr<const Batch> batch;
  };
  struct Job {
    kube::NamespacedName key;
    RetryState retry;
    RetryState serving;  // of actions that serve learners
    std::optional<Wait> waits;
  };

  void Run(Try tried);
  void OnDone(const Try& tried, const BatchResult& result);
  void ResolveUnknownOutcome(const Try& tried, const BatchResult& result, Duration delay, Job& job);

  const BatchDispatcherParts parts_;
  const BatchDispatcherOptions options_;
  FairCalls pod_making_calls_;
  std::map<std::string, Job> jobs_;  // by uid
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
