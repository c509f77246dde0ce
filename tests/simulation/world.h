#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/sim_event_loop.h"
#include "tests/simulation/coordinators.h"
#include "tests/simulation/process.h"
#include "tests/simulation/toy_program.h"
#include "tests/simulation/trace.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/collective/memory_transport.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant::sim {

// How long things take; what a seed varies.
struct Speeds {
  Duration max_network = std::chrono::milliseconds(5);
  Duration shard = std::chrono::milliseconds(10);
  int slowness = 1;  // of every third learner: so many times as long it takes for a shard
  Duration max_disk = std::chrono::milliseconds(50);
  Duration max_pod_start = std::chrono::milliseconds(500);
  Duration operator_every = std::chrono::milliseconds(200);
  double timers_late = 0.2;  // how many of them
  Duration max_timers_late = std::chrono::milliseconds(30);
};

struct JobSpec {
  DataSpec data;
  Habits habits;
  int max_learners = 5;
  std::uint64_t checkpoint_every_steps = 10;
  Duration checkpoint_every{};
  std::size_t checkpoint_slice_bytes = std::size_t{1} << 30;
  Reproducibility reproducibility = Reproducibility::kBitwise;
  Duration grace = std::chrono::seconds(20);
  std::size_t ballast_bytes = 0;
  std::size_t state_batch_bytes = 50;
  std::size_t backlog_bytes = 0;
  int ranks = 1;  // of each learner: processes of its pod
  Duration step_timeout{};
};

// One shard of one tick: kind, optimizer steps before it, shard, first sample.
using ShardKey = std::tuple<TickKind, std::uint64_t, int, std::uint64_t>;

// One learner pod and its process. Of several ranks each has such a record; what the operator knows
// of the pod stands in the first one's.
struct Pod {
  LearnerId id;
  int slowness = 1;
  std::shared_ptr<Gate> gate;
  std::unique_ptr<GatedLoop> loop;
  std::unique_ptr<ToyProgram> program;
  std::unique_ptr<SimCompute> compute;
  std::unique_ptr<PeerTransport> transport;
  std::unique_ptr<CheckpointStore> volume;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<MetricsSink> metrics;
  std::unique_ptr<SampleLedger> ledger;
  std::unique_ptr<SimLink> link;
  std::unique_ptr<LearnerLoop> learner;  // last: gone before what it borrows

  bool running = false;
  bool wanted = true;        // by the operator
  bool terminating = false;  // its deletion has begun
  bool told = false;         // by SIGTERM
  bool end_seen = false;     // the operator knows that it has ended
  bool vanished = false;     // its machine is gone; nobody has noticed
  bool holds_state = false;
  Tick applied = 0;  // when it was looked at last
  MembershipId entered;
  std::set<ShardKey> computed;
  std::optional<TimePoint> killed_at;
  std::optional<LearnerExit> exit;
};

// A job with its operator, coordinators, learners and volume, on virtual time, and what must always
// hold: a fault of it fails the running test, once. Nothing is random but what `seed` draws.
class World {
 public:
  World(std::uint64_t seed, JobSpec job, const Reference& reference, Speeds speeds = {});
  ~World();

  // ---- Time ----
  SimEventLoop& loop() { return loop_; }
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  std::mt19937_64& random() { return random_; }
  Duration Between(Duration least, Duration most);
  bool Chance(double probability);
  int Pick(int count);  // in [0, count)

  // ---- The operator: replaces what ends, until the job is complete ----
  void Want(int learners);
  void OperatorPause(bool paused) { operator_paused_ = paused; }

  // ---- Coordinators ----
  CoordinatorHost& coordinator() { return *hosts_.back(); }  // the newest, dead or alive
  void StartCoordinator();                                   // of a new term
  void RestartCoordinator();                                 // the same pod: it kept its counter
  // Which of them new connections lead to; none: the newest.
  std::optional<std::size_t> service;
  const std::vector<std::shared_ptr<CoordinatorHost>>& hosts() const { return hosts_; }

  // ---- Learners ----
  Pod& pod(std::string_view name);
  std::vector<Pod*> running();
  void Kill(Pod& pod);    // without notice; the other ranks of its learner are told to leave
  void Vanish(Pod& pod);  // with its machine: peers notice after their time-out
  void Stall(Pod& pod, Duration duration);
  void Terminate(Pod& pod, Duration grace);  // all its ranks
  MemoryNetwork& network() { return network_; }
  void CutFor(const LearnerId& a, const LearnerId& b, Duration duration, bool silent);
  void MendAll();

  // ---- Hooks for stories: after the message was queued; before the effect is done ----
  std::function<void(const LearnerId& from, const LearnerMessage& message)> on_message;
  std::function<bool(CoordinatorHost& host, const CoordinatorEffect& effect)> on_effect;
  std::function<void(const LearnerId& by, const ShardTask& task)> on_shard;  // computed
  // Before it is read; an error is what the reader gets.
  std::function<Status(const LearnerId& by, std::string_view name, std::size_t bytes)> on_read;
  std::function<Duration(const LearnerId& of)> volume_hangs;  // so long, whatever it is asked for
  std::function<bool(const LearnerId& of)> program_hangs;     // at the shard that it begins
  // Added to every call of the program that computes no shard.
  std::function<Duration(const LearnerId& of)> commits_take;
  // Before it goes: it may be changed.
  std::function<void(const LearnerId& by, const LearnerId& to, Frame& frame)> on_sent;
  std::function<void(const LearnerId& by, const LearnerId& from, const Frame& frame)> on_received;
  std::function<void(const LearnerId& by, const LearnerId& peer)> on_connected;
  MemoryStore store;

  // ---- What was seen ----
  bool completed() const { return completed_ > 0; }
  std::uint64_t newest_step();  // that a checkpoint is of; 0: there is none
  Tick furthest() {             // tick that anybody ever applied
    Look();
    return furthest_;
  }
  int memberships() const { return static_cast<int>(members_of_.size()); }
  const std::map<MembershipId, Membership>& members_of() const { return members_of_; }
  bool bitwise() const { return job_.reproducibility == Reproducibility::kBitwise; }
  int state_losses() const { return state_losses_; }  // times that all who held a state were lost
  bool faulty() const { return faulty_; }
  const std::vector<std::string>& metrics() const { return metrics_; }
  // Whether every pod has ended and the final model is the one of the reference; if no two
  // memberships can have been at work at a time, also whether metrics.jsonl is whole.
  void CheckTheEnd(bool one_at_a_time = true);
  std::string Describe() const;  // who is in which state: for the person who looks at a failure

 private:
  class Volume;
  class Metrics;
  class Ledger;

  void AddPod();
  void Build(Pod& pod);
  std::vector<Pod*> RanksOf(const Pod& pod) const;  // of its learner, itself among them
  bool Runs(const Pod& pod) const;                  // any of them
  void OnExit(Pod& pod, const LearnerExit& exit);
  void Die(Pod& pod);
  void Leave(Pod& pod, Duration grace);
  void Destroy(Pod& pod);
  void Operate();
  void DismissIdle();
  void PushPlan();
  void NewHost(std::uint64_t term, std::uint64_t counter);
  void NoteFrame(const Pod& pod, std::string_view verb, const LearnerId& peer, const Frame& frame);

  // ---- Invariants ----
  void Wrong(const std::string& what);
  void CheckState(Pod& pod);  // after it changed
  void NoteShard(Pod& pod, const ShardTask& task);
  void Look();  // how far everybody is
  void NoteMembership(const Membership& membership);
  void CheckHolders(const Pod& gone, bool gracefully);
  void CheckProgress();
  void CheckLedger();

  const JobSpec job_;
  const Schedule schedule_;
  const Reference& reference_;
  const Speeds speeds_;
  Trace trace_;
  SimEventLoop loop_;
  std::mt19937_64 random_;
  MemoryNetwork network_;
  std::set<std::pair<LearnerId, LearnerId>> cut_;

  std::vector<std::shared_ptr<CoordinatorHost>> hosts_;
  std::map<std::uint64_t, std::uint64_t> counters_;  // persisted, by term

  int wanted_ = 0;
  int last_pod_ = 0;
  bool operator_paused_ = false;
  PlanVersion version_{.lease_transitions = 1, .sequence = 0};
  std::map<std::string, std::unique_ptr<Pod>> pods_;

  std::map<MembershipId, Membership> members_of_;
  MembershipId opened_;  // the newest that somebody trained in
  std::vector<std::string> metrics_;
  // Shards by tick and membership, with their samples; and who committed the tick last.
  std::map<std::pair<Tick, MembershipId>, std::map<int, std::vector<std::uint64_t>>> computed_;
  std::map<Tick, MembershipId> committed_;
  std::optional<std::string> ended_with_;  // the hash of the parameters
  Tick furthest_ = 0;
  int state_losses_ = 0;
  int completed_ = 0;
  bool faulty_ = false;
};

}  // namespace pliant::sim
