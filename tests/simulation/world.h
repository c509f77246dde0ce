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

// Durations and delays; a seed varies them.
struct Speeds {
  Duration max_network = std::chrono::milliseconds(5);
  Duration shard = std::chrono::milliseconds(10);
  int slowness = 1;  // factor on the shard time of every third learner
  Duration max_disk = std::chrono::milliseconds(50);
  Duration max_pod_start = std::chrono::milliseconds(500);
  Duration operator_every = std::chrono::milliseconds(200);
  double timers_late = 0.2;  // fraction of timers that are late
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
  int ranks = 1;  // processes (ranks) per learner pod
  Duration step_timeout{};
  BucketSizes buckets{.first = 8, .rest = 32};
  bool all_on_devices = false;  // else some learners have their gradients there
};

// One shard of one tick: kind, optimizer steps before it, shard, first sample.
using ShardKey = std::tuple<TickKind, std::uint64_t, int, std::uint64_t>;

// One learner pod and its process. With several ranks, each rank has such a record; what the
// operator knows about the pod stands in the record of the first rank.
struct Pod {
  LearnerId id;
  int slowness = 1;
  std::shared_ptr<Gate> gate;
  std::unique_ptr<GatedLoop> loop;
  std::unique_ptr<ToyProgram> program;
  std::unique_ptr<SimRounds> rounds;
  std::unique_ptr<SimCompute> compute;
  std::unique_ptr<PeerTransport> transport;
  std::unique_ptr<CheckpointStore> volume;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<MetricsSink> metrics;
  std::unique_ptr<SampleLedger> ledger;
  std::unique_ptr<SimLink> link;
  std::unique_ptr<LearnerLoop> learner;  // last: destroyed before the objects that it borrows

  bool running = false;
  bool wanted = true;        // the operator wants it
  bool terminating = false;  // its deletion has begun
  bool told = false;         // SIGTERM was sent
  bool end_seen = false;     // the operator knows that it has ended
  bool vanished = false;     // its machine is gone; nobody has noticed
  bool holds_state = false;
  Tick applied = 0;  // at the last look
  MembershipId entered;
  std::set<ShardKey> computed;
  std::optional<TimePoint> killed_at;
  std::optional<LearnerExit> exit;
};

// A job with its operator, coordinators, learners and volume, on virtual time, and the invariants.
// The first violation fails the running test. All randomness comes from `seed`.
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

  // ---- The operator: replaces learners that end, until the job is complete ----
  void Want(int learners);
  void OperatorPause(bool paused) { operator_paused_ = paused; }

  // ---- Coordinators ----
  CoordinatorHost& coordinator() { return *hosts_.back(); }  // the newest, dead or alive
  void StartCoordinator();                                   // with a new term
  void RestartCoordinator();                                 // restarts the container of the same
                                                             // pod, which keeps its counter
  // Index of the coordinator that new connections reach; none: the newest.
  std::optional<std::size_t> service;
  const std::vector<std::shared_ptr<CoordinatorHost>>& hosts() const { return hosts_; }

  // ---- Learners ----
  Pod& pod(std::string_view name);
  std::vector<Pod*> running();
  void Kill(Pod& pod);    // without notice; the other ranks of its learner receive SIGTERM
  void Vanish(Pod& pod);  // with its machine: peers notice after their timeout
  void Stall(Pod& pod, Duration duration);
  void Terminate(Pod& pod, Duration grace);  // sends SIGTERM to all its ranks
  MemoryNetwork& network() { return network_; }
  RoundsNetwork& rounds() { return rounds_; }
  void CutFor(const LearnerId& a, const LearnerId& b, Duration duration, bool silent);
  void MendAll();

  // ---- Hooks for stories: called after the message was queued, or before the effect is done ----
  std::function<void(const LearnerId& from, const LearnerMessage& message)> on_message;
  std::function<bool(CoordinatorHost& host, const CoordinatorEffect& effect)> on_effect;
  std::function<void(const LearnerId& by, const ShardTask& task)> on_shard;  // after the shard was
                                                                             // computed
  // Called before a read; an error is returned to the reader.
  std::function<Status(const LearnerId& by, std::string_view name, std::size_t bytes)> on_read;
  std::function<Duration(const LearnerId& of)> volume_hangs;  // delay of every volume operation
  std::function<bool(const LearnerId& of)> program_hangs;     // at the shard that it begins
  // Added to the time of every call of the program that computes no shard.
  std::function<Duration(const LearnerId& of)> commits_take;
  // Called before the frame is sent, and may change it.
  std::function<void(const LearnerId& by, const LearnerId& to, Frame& frame)> on_sent;
  std::function<void(const LearnerId& by, const LearnerId& from, const Frame& frame)> on_received;
  std::function<void(const LearnerId& by, const LearnerId& peer)> on_connected;
  MemoryStore store;

  // ---- What was seen ----
  bool completed() const { return completed_ > 0; }
  std::uint64_t newest_step();  // step of the newest checkpoint; 0: there is none
  Tick furthest() {             // the highest tick that any learner ever applied
    Look();
    return furthest_;
  }
  int memberships() const { return static_cast<int>(members_of_.size()); }
  const std::map<MembershipId, Membership>& members_of() const { return members_of_; }
  bool bitwise() const { return job_.reproducibility == Reproducibility::kBitwise; }
  int state_losses() const {
    return state_losses_;
  }  // number of times that all holders of the
     // state were lost
  bool faulty() const { return faulty_; }
  const std::vector<std::string>& metrics() const { return metrics_; }
  // Checks that every pod has ended and that the final model is the one of the reference. If no two
  // memberships can have been active at the same time, also checks that metrics.jsonl is complete.
  void CheckTheEnd(bool one_at_a_time = true);
  std::string Describe() const;  // the state of each learner, for a person who debugs a failure

 private:
  class Volume;
  class Metrics;
  class Ledger;

  void AddPod();
  void Build(Pod& pod);
  std::vector<Pod*> RanksOf(const Pod& pod) const;  // all ranks of its learner, including itself
  bool Runs(const Pod& pod) const;                  // whether any rank of its learner runs
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
  void CheckState(Pod& pod);  // called after the state changed
  void NoteShard(Pod& pod, const ShardTask& task);
  void Look();  // records the progress of every learner
  void NoteMembership(const Membership& membership);
  void CheckHolders(const Pod& gone, bool gracefully);
  void CheckProgress();
  // As the training goes; in Statistical mode no batch grows.
  const Schedule& schedule() const { return bitwise() ? *reference_.schedule : schedule_; }
  void CheckLedger();
  // The noise scale, wherever it shows, is that of the undisturbed training.
  void CheckNoise(const Progress& progress);
  void CheckNoise(const Manifest& manifest);
  void CheckCheckpoints();

  const JobSpec job_;
  const Schedule schedule_;  // as learners get it: no batch has grown yet
  const Reference& reference_;
  const Speeds speeds_;
  Trace trace_;
  SimEventLoop loop_;
  std::mt19937_64 random_;
  MemoryNetwork network_;
  RoundsNetwork rounds_;
  std::set<std::pair<LearnerId, LearnerId>> cut_;

  std::vector<std::shared_ptr<CoordinatorHost>> hosts_;
  std::map<std::uint64_t, std::uint64_t> counters_;  // persisted coordinator counters, by term

  int wanted_ = 0;
  int last_pod_ = 0;
  bool operator_paused_ = false;
  PlanVersion version_{.lease_transitions = 1, .sequence = 0};
  std::map<std::string, std::unique_ptr<Pod>> pods_;

  std::map<MembershipId, Membership> members_of_;
  MembershipId opened_;  // the newest membership that a learner trained in
  std::vector<std::string> metrics_;
  // Samples of each computed shard, by tick and membership; and the membership that committed the
  // tick last.
  std::map<std::pair<Tick, MembershipId>, std::map<int, std::vector<std::uint64_t>>> computed_;
  std::map<Tick, MembershipId> committed_;
  std::optional<std::string> ended_with_;  // SHA-256 of the final parameters
  Tick furthest_ = 0;
  int state_losses_ = 0;
  int completed_ = 0;
  bool faulty_ = false;
};

}  // namespace pliant::sim
