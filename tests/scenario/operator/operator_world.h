#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/sim_event_loop.h"
#include "operator/controller/action_runner.h"
#include "operator/controller/coordinator_client.h"
#include "operator/controller/job_table.h"
#include "operator/controller/planning_loop.h"
#include "operator/kube/client.h"
#include "operator/metrics/metrics.h"
#include "tests/scenario/operator/fake_api_server.h"

namespace pliant {

// The operator amid a cluster that is made of virtual time: an API server, kubelets that start and
// end pods, and coordinators that resize their jobs. What must always hold is checked after every
// change of a pod.
class OperatorWorld {
 public:
  explicit OperatorWorld(std::map<std::string, int> gpus_of_nodes);
  ~OperatorWorld();

  void StartOperator();
  // As by SIGKILL: what it knows is lost, what is under way is not.
  void KillOperator();

  void SubmitJob(const std::string& name, const nlohmann::json& spec_changes = nlohmann::json());
  // As it is once the garbage collector has been there.
  void RemoveJob(const std::string& name);
  void EditJob(const std::string& name, const nlohmann::json& spec_changes);
  // The learners of `name` complete their training, or one of them crashes.
  void Complete(const std::string& name);
  void CrashALearner(const std::string& name, int exit_code = 1);
  // Removes pods without asking them, as `kubectl delete --force` does.
  void RemovePods(const std::string& name, const std::string& role);
  // As an operator left the job that knew one name for all coordinators.
  void MakeOlder(const std::string& name);
  // The names in the certificate of the job's coordinator.
  std::set<std::string> NamesOfCoordinator(const std::string& name) const;
  // From now on, programs end at once with this code.
  void LetProgramsFail(const std::string& name, std::optional<int> exit_code);
  // From now on, calls that make pods are held; or those that are go on.
  void LetWebhooksHang(bool hang);
  void SetImageMissing(const std::string& name) { missing_images_.insert(name); }

  nlohmann::json Status(const std::string& name) const;
  int Learners(const std::string& name) const { return Status(name).value("learners", 0); }
  std::string Phase(const std::string& name) const { return Status(name).value("phase", ""); }
  std::string Metrics() const;
  int PodsOf(const std::string& name, const std::string& role) const;

  // Whether it came true within a virtual ten minutes.
  bool Reach(const std::function<bool()>& done) {
    return loop.RunUntilTrue(done, std::chrono::minutes(10));
  }
  bool ReachSizes(const std::map<std::string, int>& sizes);

  SimEventLoop loop;
  FakeApiServer server;
  std::vector<std::string> events;    // "job: Reason"
  std::optional<int> learners_asked;  // what all programs ask for
  int terms_seen = 0;                 // the highest that a coordinator was created with

 private:
  struct Operator;
  class Coordinators;
  struct Training {
    std::int64_t step = 0;
    bool complete = false;
  };

  controller::WallTime Now() const;
  std::string JobPath(const std::string& name) const;
  std::string JobOf(const nlohmann::json& pod) const;
  void OnChange(const std::string& path, const nlohmann::json& object);
  void OnPod(const std::string& path, const nlohmann::json& pod);
  void StartPod(const std::string& path);
  void EndPod(const std::string& path, int exit_code, const std::string& reason);
  void CheckAlways();

  const std::map<std::string, int> gpus_of_nodes_;
  std::map<std::string, Training> trainings_;          // by job name
  std::map<std::string, std::optional<int>> failing_;  // by job name
  std::set<std::string> missing_images_;
  bool webhooks_hang_ = false;
  std::vector<std::function<void()>> held_by_webhooks_;
  std::set<std::string> names_used_;  // of learners, over all time
  std::unique_ptr<Coordinators> coordinators_;
  kube::KubeClient client_;
  std::unique_ptr<Operator> operator_;
  int operators_started_ = 0;
  int operator_generation_ = 0;
};

}  // namespace pliant
