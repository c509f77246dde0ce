#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "operator/controller/coordinators/http_coordinator_client.h"
#include "operator/controller/rounds/planning_loop.h"

namespace pliant::controller {

struct LeadershipOptions {
  std::string ns;  // the operator's own: its keys are kept there
  PodDefaults pods;
  PlanningLoopOptions planning;
  HttpCoordinatorClient::Connect connect;
};

struct LeadershipParts {
  EventLoop& loop;
  JobTable& table;
  kube::KubeClient& client;
  Executor api_calls;
  Executor pod_making_calls;
  Executor coordinator_calls;
  metrics::Metrics& metrics;
  CrashNotes* crash_notes = nullptr;  // null: nothing is noted
};

// Runs a process from its election on: it loads the keys, then it plans. Control thread.
class Leadership {
 public:
  // All parts outlive it; calls that run on the executors must have ended before it is destroyed.
  Leadership(LeadershipParts parts, LeadershipOptions options);

  // Called once, when this process becomes the leader. `transitions`: how often the leader has
  // changed.
  void Begin(int transitions);

  // Null before the keys are there.
  PlanningLoop* planning() { return planning_.get(); }
  const PlanningLoop* planning() const { return planning_.get(); }

 private:
  void GetKeys();
  void OnKeys(const Result<MasterKeys>& keys);

  const LeadershipParts parts_;
  LeadershipOptions options_;
  const StatusWriter status_writer_;
  Backoff backoff_{BackoffOptions{.jitter = 0}};
  std::string last_error_;  // the last one that was logged
  // Created once the keys are loaded, in this order.
  std::unique_ptr<HttpCoordinatorClient> coordinators_;
  std::unique_ptr<ActionRunner> runner_;
  std::unique_ptr<PlanningLoop> planning_;
};

}  // namespace pliant::controller
