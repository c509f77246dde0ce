#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/actions/job_table.h"
#include "operator/controller/actions/retry_state.h"
#include "operator/controller/calls/executor.h"
#include "operator/controller/coordinators/coordinator_monitor.h"
#include "operator/controller/model/job_view.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// All outlive the leavers.
struct LeaversParts {
  EventLoop& loop;
  JobTable& table;
  const ActionRunner& runner;
  Executor api_calls;  // for the runner
  CoordinatorMonitor& monitor;
  std::function<void()> request_round;
};

// Lets learners leave as the plan says, whatever else is done for their jobs or has failed: their
// coordinator is notified at once, and pods that have to be deleted have batches and a back-off of
// their own. A pod of which a write is under way is deleted after that. Control thread.
class Leavers {
 public:
  Leavers(LeaversParts parts, std::function<WallTime()> now);
  Leavers(const Leavers&) = delete;
  Leavers& operator=(const Leavers&) = delete;

  void Look(const JobView& view, const planner::Decision& decision, WallTime now);
  // Called when the job is gone from the stores.
  void ForgetJob(const std::string& job_uid) { jobs_.erase(job_uid); }

  // The jobs to be looked at by now, and the time of the next ones.
  std::set<kube::NamespacedName> TakeDue(WallTime now);
  std::optional<WallTime> next_look() const;

 private:
  struct Job {
    kube::NamespacedName key;
    bool deletes = false;  // a batch is under way
    RetryState retry;
    std::optional<WallTime> look_at;
  };

  void Delete(const JobView& view, std::vector<DeletePod> deletions, WallTime now, Job& job);
  void OnDeleted(const Batch& batch, const BatchResult& result);

  const LeaversParts parts_;
  const std::function<WallTime()> now_;
  std::map<std::string, Job> jobs_;  // by uid
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
