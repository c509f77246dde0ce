#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/controller/process/clock_check.h"
#include "operator/controller/process/leadership.h"
#include "operator/controller/process/slewed_clock.h"
#include "operator/kube/informer.h"
#include "operator/kube/lease_steps.h"
#include "operator/metrics/metrics.h"
#include "tests/simulation/operator/faulty_transport.h"
#include "tests/simulation/operator/process_loop.h"

namespace pliant::operator_sim {

// Dependencies of a replica on the world.
struct ReplicaParts {
  EventLoop& loop;
  kube::HttpTransport& server;
  std::function<api::WallTime()> now;  // time of its machine's clock
  std::function<double()> random;      // in [0, 1)
  FaultyTransport::Decide fault;
  FaultyTransport::Decide coordinator_fault;  // faults of requests to coordinators
  FaultyTransport::Observe on_exchange;       // with the server and with coordinators
  std::function<bool()> webhooks_hang;        // while true, no pod is created
  controller::EventSink on_event;
  controller::HttpCoordinatorClient::Connect connect;
  controller::CrashNotes* crash_notes = nullptr;
  controller::NodeRequestKind node_requests = controller::NodeRequestKind::kPlaceholders;
  // The process has ended and must be destroyed, but not within this call.
  std::function<void()> on_end;
};

// One operator process: everything that its main() connects, without the threads. Its reflectors
// and its elector run their steps on the world's time.
class Replica {
 public:
  Replica(std::string identity, ReplicaParts parts);
  ~Replica();

  // Objects of the collection changed at the server; the watch reports them a little later.
  void OnServerChange(const std::string& path);
  void StopUntil(TimePoint time) { loop_.StopUntil(time); }
  // No watch of it delivers anything before `time`, and no connection breaks.
  void FreezeWatchesUntil(TimePoint time) { frozen_until_ = time; }
  // As after SIGTERM: the replica releases its lease.
  void Release();

  // The text of its /metrics. The replica leads.
  std::string Metrics();

  // The plan that it made last; null: it does not lead.
  const planner::Plan* plan() const;

  bool leads() const { return steps_.policy().Leads(loop_.Now()); }
  int writes() const { return transport_.writes(); }
  const std::string& identity() const { return identity_; }

 private:
  struct Follower;

  template <typename T>
  void Follow(kube::Informer<T>& informer, const kube::ResourceType& type,
              kube::ReflectorOptions options);
  void Poll(Follower& follower);
  void Elect();
  controller::Executor ExecutorOf(Duration most);
  void MakePods(std::function<void()> task);
  kube::ClientOptions OptionsOfClient(std::function<bool()> may_write);

  const std::string identity_;
  const ReplicaParts parts_;
  ProcessLoop loop_;
  Life life_;
  controller::SlewedClock clock_;
  controller::ClockCheck clock_check_;
  TimePoint frozen_until_{};
  FaultyTransport transport_;
  kube::KubeClient lease_client_;
  kube::KubeClient client_;
  metrics::Metrics metrics_;
  kube::Informer<api::ElasticTrainingJob> jobs_;
  api::NeedsCache needs_;
  kube::Informer<api::Pod> pods_;
  kube::Informer<api::Node> nodes_;
  kube::Informer<api::Service> services_;
  kube::Informer<api::ResourceQuota> quotas_;
  kube::Informer<api::TrainingQueue> queues_;
  kube::Informer<api::GpuPool> pools_;
  kube::Informer<api::Namespace> namespaces_;
  controller::JobTable table_;
  controller::Leadership leadership_;
  kube::LeaseSteps steps_;
  std::vector<std::unique_ptr<Follower>> followers_;
  bool elected_ = false;
};

}  // namespace pliant::operator_sim
