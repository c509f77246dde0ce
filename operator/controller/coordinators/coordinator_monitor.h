#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "base/lifetime.h"
#include "operator/controller/calls/executor.h"
#include "operator/controller/calls/fair_calls.h"
#include "operator/controller/coordinators/coordinator_client.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

struct CoordinatorMonitorOptions {
  std::int64_t lease_transitions = 0;            // orders the plans of successive leaders
  Duration poll_busy = std::chrono::seconds(1);  // while something changes
  Duration poll_settled = std::chrono::seconds(5);
  // A coordinator that gave no answer is called again after poll_busy, twice that, and so on up to
  // this: well below the silence after which it is replaced.
  Duration poll_silent = std::chrono::seconds(10);
  // Prompt calls go to coordinators that answer at once. Lasting calls, to those that did not
  // answer, or that took longer than `slow` last, may each take until the client's deadline. Both
  // are shared by namespaces, and the executor has threads for both.
  FairCallsOptions prompt_calls{.at_a_time = 8, .of_one = 4};
  FairCallsOptions lasting_calls{.at_a_time = 4, .of_one = 2};
  Duration slow = std::chrono::milliseconds(500);
  std::function<WallTime()> now;
  // Called on the control thread when a job's CoordinatorView has changed in more than stats.
  std::function<void(const std::string& job_uid)> on_change;
  // For metrics, after each call: "OK", or the name of the error's code. May be empty.
  std::function<void(std::string_view result)> on_call;
};

// Keeps in touch with the coordinators of all jobs: polls their progress, and sends each its plan
// until it has taken that. One call at a time to each. A coordinator runs in its job's namespace,
// whose owner may make it do anything: one that does not answer, answers slowly, or refuses every
// plan does not delay the others. Control thread.
class CoordinatorMonitor {
 public:
  // All outlive the monitor.
  CoordinatorMonitor(EventLoop& loop, Executor executor, CoordinatorClient& client,
                     CoordinatorMonitorOptions options);
  ~CoordinatorMonitor();
  CoordinatorMonitor(const CoordinatorMonitor&) = delete;
  CoordinatorMonitor& operator=(const CoordinatorMonitor&) = delete;

  // Connects to the coordinator of `term` of the job, which is in `name_space`, at `host` (an IP
  // address). Forgets what a coordinator of another term has reported. Calling it again changes
  // nothing.
  void Follow(const std::string& job_uid, const std::string& name_space, std::int64_t term,
              const std::string& host);
  // The job has no running coordinator for now.
  void Disconnect(const std::string& job_uid, std::int64_t term);
  // The job is gone.
  void Forget(const std::string& job_uid);

  // The learners of the next plan for the job's coordinator, and a sentence for people that says
  // why. A plan that differs in its sentence alone is not sent.
  void SetDesired(const std::string& job_uid, std::vector<PlannedLearner> learners,
                  std::string reason);
  // Whether something is about to change, so that progress is polled more often.
  void SetBusy(const std::string& job_uid, bool busy);

  CoordinatorView View(const std::string& job_uid) const;

 private:
  struct Link {
    std::string name_space;
    std::int64_t term = 0;
    std::string host;  // empty: none to call
    CoordinatorView view;
    std::optional<std::vector<PlannedLearner>> desired;
    std::string reason;                                       // for these
    std::optional<std::vector<PlannedLearner>> acknowledged;  // taken by this coordinator
    PlanStamp acknowledged_stamp;                             // of that plan
    PlanStamp last;                                           // the greatest known stamp
    bool busy = true;
    bool calling = false;
    bool waiting = false;               // a call waits for its turn
    bool slow = false;                  // its last answer took long
    int conflicts = 0;                  // plans that it refused in a row
    Backoff backoff{BackoffOptions{}};  // of calls without a useful answer
    Duration pause{};                   // after a call without one; else zero
    bool again = false;                 // call again at once
    bool ask = true;                    // first ask which plan it took last
    std::string last_error;             // the last one that was logged
    std::uint64_t generation = 0;       // of term and host: older answers are dropped
    TimerId timer = 0;
  };

  void CallSoon(const std::string& job_uid, Link& link);
  void Call(const std::string& job_uid);
  std::function<void()> PrepareCall(const std::string& job_uid, std::uint64_t generation);
  void OnAnswer(const std::string& job_uid, std::uint64_t generation,
                std::optional<CoordinatorPlan> plan, Result<Progress> answer);
  void OnProgress(Link& link, const std::optional<CoordinatorPlan>& plan, Progress progress);
  void OnCallFailed(const std::string& job_uid, Link& link, const Error& error);
  bool MustReport(const Link& link) const;
  void Schedule(const std::string& job_uid, Link& link);
  Duration DelayAfter(const Link& link) const;

  EventLoop& loop_;
  CoordinatorClient& client_;
  const CoordinatorMonitorOptions options_;
  std::map<std::string, Link> links_;
  std::uint64_t last_generation_ = 0;
  FairCalls prompt_calls_;
  FairCalls lasting_calls_;
  Lifetime lifetime_;
};

}  // namespace pliant::controller
