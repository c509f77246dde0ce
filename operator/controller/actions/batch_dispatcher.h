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

// What was decided to be done for one job.
struct BatchOrder {
  std::shared_ptr<const Batch> batch;
  std::shared_ptr<const api::ElasticTrainingJob> job_before;  // on which it was decided
  LastReported reported_before;        // of the job, before its status was to be written
  std::optional<WallTime> look_again;  // at the latest, once it is done
  std::optional<Duration> wait_ended;  // of a job that is given its first GPUs by it
};

// All outlive the dispatcher.
struct BatchDispatcherParts {
  EventLoop& loop;
  JobTable& table;
  kube::WorkQueue& queue;
  const ActionRunner& runner;
  Executor api_calls;         // for the runner
  Executor pod_making_calls;  // for it too: apart, because admission webhooks may make them last
};

struct BatchDispatcherOptions {
  FairCallsOptions pod_making_calls;  // shared by namespaces
  Duration first_conflict_delay{};
  std::function<WallTime()> now;
  // A batch was tried, or it was asked what has become of it; also of a job that is gone. `took`:
  // since it was ordered.
  std::function<void(const BatchOrder& order, const BatchResult& result, Duration took)> on_result;
};

// Carries out what was decided on jobs, one batch at a time for each of them, and decides when it
// is tried again. What has been begun counts as done in the table, and what came of it is known of
// the job there. The job stays taken from the queue until its batch has ended. Control thread.
class BatchDispatcher {
 public:
  BatchDispatcher(BatchDispatcherParts parts, BatchDispatcherOptions options);
  BatchDispatcher(const BatchDispatcher&) = delete;
  BatchDispatcher& operator=(const BatchDispatcher&) = delete;

  // The job is there, and is forgotten when it is gone from the stores. What was begun for it ends
  // without a further try then: one that is made under its name does not wait for more than the
  // answer to a request that has been sent. Adding it again changes nothing.
  void AddJob(const std::string& job_uid, const kube::NamespacedName& key);
  void ForgetJob(const std::string& job_uid);
  // Null: it is gone, or was not added.
  const kube::NamespacedName* KeyOfJob(const std::string& job_uid) const;
  // Until when a job that was added is left alone after a failure. Nothing: it is not.
  std::optional<WallTime> RestsUntil(const std::string& job_uid, WallTime now) const;

  void Dispatch(BatchOrder order);

 private:
  struct Try {
    BatchOrder order;
    std::shared_ptr<const Batch> batch;  // the order's; or its one action whose outcome is unknown
    bool resolves = false;               // only asks what has become of it
    bool unanswered_before = false;      // the server did not answer the try before
    TimePoint ordered{};
  };
  // Until it is asked what has become of an action.
  struct Wait {
    TimerId timer = 0;
    std::shared_ptr<const Batch> batch;
  };
  struct Job {
    kube::NamespacedName key;
    RetryState retry;
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
