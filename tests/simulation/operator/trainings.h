#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/http_transport.h"
#include "tests/simulation/operator/cluster.h"

namespace pliant::operator_sim {

struct TrainingOptions {
  std::int64_t steps = 100;
  Duration step_time = std::chrono::milliseconds(200);
  // The program exits at once with this code.
  std::optional<int> exit_code;
  bool ignores_stop_signal = false;
  std::optional<int> learners_asked;  // the learners that its program requests
  // Faults of its coordinator, whose image the owner controls: it does not start, it refuses all
  // plans, or it reports another membership each time, with learners that never existed, or it says
  // that it has a plan of a leader that never was.
  bool has_no_coordinator = false;
  bool refuses_plans = false;
  bool flaps = false;
  bool invents_a_leader = false;
};

// The programs inside the pods: coordinators that follow their contract (docs/contracts.md), and
// learners that join, leave, lose steps when all are lost, and complete.
class Trainings {
 public:
  Trainings(EventLoop& loop, kube::MemoryApiServer& server, Cluster& cluster, Random& random);

  void Define(const std::string& job, TrainingOptions options) { options_[job] = options; }

  bool HasNoCoordinator(const std::string& job) { return options_[job].has_no_coordinator; }

  // All steps of the job are done.
  void Complete(const std::string& job);

  // One exchange with the coordinator at this address.
  Result<kube::HttpResponse> Call(const std::string& address, const kube::HttpRequest& request);

  void OnStart(const std::string& pod);
  void OnStopSignal(const std::string& pod);
  void OnEnd(const std::string& pod);

  // Whether the learner trains, and the job's coordinator, which has long been answering, was not
  // told that it leaves.
  bool AwaitsWordToLeave(const std::string& job_uid, const std::string& learner) const;

  int plans_refused = 0;  // by coordinators that refuse all plans

  // Called once when a plan has the stamp of an earlier one and another content, or when the
  // operator sent something to a coordinator that cannot prove its job.
  std::function<void(const std::string& what)> on_violation;

 private:
  using Stamp = std::pair<std::int64_t, std::int64_t>;  // lease transitions, sequence
  struct Coordinator {
    std::int64_t term = 0;
    std::optional<Stamp> accepted;
    Json plan;
    int answers = 0;
    TimePoint started{};
  };
  struct Training {
    std::string job;  // the job's name
    std::int64_t term = 0;
    std::int64_t counter = 0;
    std::vector<std::string> members;  // paths of pods
    std::int64_t step = 0;             // at `since`
    std::int64_t saved = 0;            // last checkpointed step
    TimePoint since{};
    bool complete = false;
    TimerId timer = 0;
  };

  const TrainingOptions& OptionsOf(const Training& training);
  Training* OfPod(const std::string& pod);
  Coordinator* LeadingCoordinator(const std::string& uid);
  std::int64_t StepNow(const Training& training);
  void Look(const std::string& uid, Duration most);
  void Resize(const std::string& uid);
  void SetMembers(Training& training, std::vector<std::string> members);
  void Complete(Training& training);
  void AwaitCompletion(const std::string& uid);
  Json Report(const std::string& uid, Coordinator& coordinator);
  Json ExitReport(const Training& training, const char* reason);

  EventLoop& loop_;
  kube::MemoryApiServer& server_;
  Cluster& cluster_;
  Random& random_;
  std::map<std::string, TrainingOptions> options_;   // by job name
  std::map<std::string, Training> trainings_;        // by job uid
  std::map<std::string, Coordinator> coordinators_;  // running coordinators, by pod path
  std::map<std::string, std::string> uids_;          // job uids, by the path of a pod that ran
  std::map<std::pair<std::string, Stamp>, std::string> plans_;  // by pod and stamp
};

// A connection of the operator to one coordinator.
class CoordinatorConnection final : public kube::HttpTransport {
 public:
  CoordinatorConnection(Trainings& trainings, std::string address)
      : trainings_(trainings), address_(std::move(address)) {}

  Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token) override {
    return trainings_.Call(address_, request);
  }
  Result<kube::HttpResponse> Stream(const kube::HttpRequest&, const kube::LineSink&, Duration,
                                    std::stop_token) override {
    return Fail(ErrorCode::kUnavailable, "coordinators have no streams");
  }

 private:
  Trainings& trainings_;
  const std::string address_;
};

}  // namespace pliant::operator_sim
