#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/http_server.h"
#include "base/real_event_loop.h"
#include "base/workers.h"
#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"
#include "operator/controller/objects/credentials.h"
#include "operator/kube/client.h"
#include "operator/kube/informer.h"

namespace pliant::bench {

// Simulated nodes, whose kubelets report that pods run, and coordinators that listen on loopback
// addresses. Counts the operator's writes, too.
class FakeCluster {
 public:
  // `client` outlives it. `folder` is for the coordinators' certificate.
  FakeCluster(kube::KubeClient& client, const controller::MasterKeys& keys, std::string folder);
  ~FakeCluster();

  // Adds `count` nodes with the label bench=`label`.
  void AddNodes(const std::string& label, int count, int gpus);
  // Starts or stops counting. Off by default, because another watch is work for the API server.
  void CountEvents(bool count);
  bool counts_events() const {
    return counts_events_;
  }  // true once all earlier events were
     // received
  // All learners of the job end, as after the last step.
  void Complete(const std::string& job);

  // Jobs whose template was checked and whose status says so. They may get GPUs later, or never.
  int admitted() const { return admitted_; }
  int running_learners() const { return running_; }
  std::int64_t job_changes() const { return job_changes_; }
  std::int64_t pods_made_or_gone() const { return pods_made_or_gone_; }  // of jobs
  // The operator's writes to pods of jobs: creations, openings of gates and deletions.
  std::int64_t pod_writes() const { return pod_writes_; }
  // Writes of events of jobs, while they are counted.
  std::int64_t event_writes() const { return event_writes_; }
  // Seconds since the program started; 0: not yet.
  double last_size_change() const { return last_size_change_; }
  double last_plan() const { return last_plan_; }
  std::int64_t size_changes() const { return size_changes_; }

 private:
  struct Coordinator {
    std::string job_uid;
    std::int64_t term = 0;
    std::unique_ptr<HttpServer> server;
    nlohmann::json stamp;
    std::vector<std::string> members;
  };

  void KeepReady(const std::stop_token& stop);
  void OnJob(const kube::Store<api::ElasticTrainingJob>::Change& change);
  void OnPod(const kube::Store<api::Pod>::Change& change);
  void CountPodWrites(const kube::Store<api::Pod>::Change& change);
  void AwaitEvents();
  void Run(const api::Pod& pod);
  void End(const kube::NamespacedName& pod, const char* reason);
  std::string Listen(const api::Pod& pod);
  ServerResponse TakePlan(const std::string& address, const ServerRequest& request);
  ServerResponse Progress(const std::string& address);

  kube::KubeClient& client_;
  const controller::MasterKeys keys_;
  const std::filesystem::path folder_;  // for the certificates of all coordinators
  std::map<std::string, int> nodes_;    // number of GPUs by node; guarded by mutex_
  std::mutex mutex_;
  std::atomic<int> admitted_ = 0;
  std::atomic<int> running_ = 0;
  std::atomic<std::int64_t> job_changes_ = 0;
  std::atomic<std::int64_t> pods_made_or_gone_ = 0;
  std::atomic<std::int64_t> size_changes_ = 0;
  std::atomic<std::int64_t> pod_writes_ = 0;
  std::atomic<std::int64_t> event_writes_ = 0;
  std::atomic<bool> counts_events_ = false;
  std::atomic<double> last_size_change_ = 0;
  std::atomic<double> last_plan_ = 0;

  RealEventLoop loop_;
  // Used only on the loop's thread.
  std::map<std::string, Coordinator> coordinators_;  // by address
  std::set<std::string> started_;                    // uids of pods
  std::set<std::string> ended_;
  int addresses_ = 0;

  Workers workers_;
  kube::Informer<api::ElasticTrainingJob> jobs_;
  kube::Informer<api::Pod> pods_;
  std::optional<kube::Informer<kube::ObjectMeta>> events_;  // used only on the loop's thread
  std::jthread thread_;
  std::jthread heart_;
};

// Seconds since the program started.
double Elapsed();

}  // namespace pliant::bench
