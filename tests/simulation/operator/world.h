#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/sim_event_loop.h"
#include "operator/kube/client.h"
#include "tests/kube/memory_api_server.h"
#include "tests/simulation/operator/cluster.h"
#include "tests/simulation/operator/invariants.h"
#include "tests/simulation/operator/replica.h"
#include "tests/simulation/operator/told_in_time.h"
#include "tests/simulation/operator/trainings.h"
#include "tests/simulation/trace.h"

namespace pliant::operator_sim {

// Probabilities of faults between a replica and the API server.
struct ApiFaults {
  double cut = 0;
  double cut_done = 0;
  double throttle = 0;
  double server = 0;
  double watch = 0;  // per event that a watch delivers
};

// Two operator replicas, an API server, nodes and trainings, on virtual time. All randomness comes
// from the seed.
class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Actions of administrators: creates a cluster-scoped object, or merges `spec` into its own.
  void Apply(const kube::ResourceType& type, const std::string& name, const Json& spec);
  void Remove(const kube::ResourceType& type, const std::string& name);
  Json StatusOf(const kube::ResourceType& type, const std::string& name) const;
  // Actions of users.
  void Submit(const std::string& job, const TrainingOptions& training, const Json& spec_changes);
  void Edit(const std::string& job, const Json& spec_changes);
  void Delete(const std::string& job);
  // As `kubectl delete --cascade=orphan` does. The garbage collector acts after this time.
  void DeleteAndOrphan(const std::string& job, Duration after = Duration::zero());
  // A finalizer of the tenant's keeps the job, whoever deletes it, until it is let go.
  void Hold(const std::string& job);
  void LetGo(const std::string& job);
  // Limits the GPUs that pods of team-a may request together, by a ResourceQuota. nullopt: no more.
  void SetQuota(std::optional<int> gpus);
  // Creates the pods of a DaemonSet, one on each node. Each asks for `cpus`.
  void CreateDaemonSet(const std::string& ns, const std::string& name, int cpus);
  // Creates pods that ask for more GPUs than any node has, each with its own affinity of so many
  // values.
  void CreateFatPods(const std::string& ns, const std::string& name, int count, int values);
  std::string Phase(const std::string& job) const;
  Json Status(const std::string& job) const;
  std::vector<std::string> Jobs() const;
  // Paths of pods with this role that have not ended: of one job, or of all jobs if `job` is empty.
  std::vector<std::string> PodsOf(const std::string& job, std::string_view role) const;

  // Starts the operator's processes. One that ends restarts after a while.
  void StartReplicas();
  // Starts two nodes of four GPUs, and replicas of which one leads and has listed everything.
  void StartOnTwoNodes();
  Replica* leader();
  void Kill(std::size_t replica);
  void Stop(std::size_t replica, Duration time);  // SIGSTOP, then SIGCONT
  void Release(std::size_t replica);              // SIGTERM
  // The process that makes the `count`-th write from now on dies, before or after the write.
  void KillAtWrite(int count, bool after);
  // The same at the `count`-th plan that is sent to a coordinator.
  void KillAtPlan(int count, bool after);
  void Partition(std::size_t replica, Duration time);
  void FreezeWatches(std::size_t replica, Duration time);
  // Moves its machine's clock by `step`, forward or back.
  void StepClock(std::size_t replica, std::chrono::milliseconds step) {
    slots_[replica].clock_ahead += step;
  }
  std::size_t leading() const;  // index of the leading replica; 2: none
  int writes() const;           // of all replicas so far, including writes to the lease
  int writes_besides_lease() const { return writes_besides_lease_; }
  int dry_runs() const { return dry_runs_; }  // counted in writes()
  int plans() const { return plans_; }        // sent to coordinators, including refused ones
  int deaths() const { return deaths_; }

  void Mend();  // no fault from now on; everything that is down restarts
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  bool faulty() const { return !invariants.violations().empty(); }
  std::string Describe() const;
  // Digest of all exchanges and reports of the replicas so far.
  std::uint64_t digest() const { return trace_.digest(); }

  SimEventLoop loop;
  Random random;
  kube::MemoryApiServer server;
  Cluster cluster;
  Trainings trainings;
  Invariants invariants;
  ApiFaults faults;
  bool coordinators_cut = false;
  controller::CrashNotes* crash_notes = nullptr;  // for replicas that start
  // For replicas that start.
  controller::NodeRequestKind node_requests = controller::NodeRequestKind::kPlaceholders;
  std::string refusal;         // reason why pod creation is refused now; empty:
                               // it is not
  bool webhooks_hang = false;  // requests that create pods are not answered now
  // Decides first on each request of a replica; kNone leaves it to the random faults. It may
  // advance the time.
  std::function<Disposition(const kube::HttpRequest& request)> interfere;
  std::vector<std::string> events;  // events that the operator recorded: "job: Reason"

 private:
  struct Slot {
    std::unique_ptr<Replica> replica;
    TimePoint cut_until{};
    std::chrono::milliseconds clock_ahead{};  // relative to the world's time
    int starts = 0;
    bool ending = false;
  };

  api::WallTime Now() const;
  void OnChange(const std::string& path, const kube::MemoryApiServer::Object& object);
  void OnEvent(std::size_t slot, const kube::ResourceType& type, const api::ObjectMeta& object,
               const controller::ObjectEvent& event);
  void Start(std::size_t slot);
  void End(std::size_t slot);
  Disposition Decide(std::size_t slot, const kube::HttpRequest& request);
  Fault DecideOnCoordinator(const kube::HttpRequest& request);

  // Handles an exchange of one replica; OnEvent is alike.
  void NoteExchange(std::size_t slot, const kube::HttpRequest& request,
                    const Result<kube::HttpResponse>& answer);

  sim::Trace trace_;
  kube::KubeClient admin_;
  std::array<Slot, 2> slots_;
  // Number of remaining writes or plans, and whether death follows the last one.
  using Death = std::optional<std::pair<int, bool>>;
  static Fault DeathAt(Death& death);

  Death death_at_write_;
  Death death_at_plan_;
  void LookWhetherAllAreTold();
  // The leader or its connections were disturbed: it may take a while to notice.
  void Disturb(Duration time);

  ToldInTime told_in_time_;
  TimerId look_timer_ = 0;
  TimePoint disturbed_until_{};
  std::string leader_before_;
  int writes_before_ = 0;  // writes of processes that have ended
  int writes_besides_lease_ = 0;
  int dry_runs_ = 0;
  int plans_ = 0;
  int deaths_ = 0;
  bool mended_ = false;
  bool collecting_ = false;
};

}  // namespace pliant::operator_sim
