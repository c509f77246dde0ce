#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/checkpoint/checkpoint.h"

namespace pliant::sim {
namespace {

using namespace std::chrono_literals;

// A TCP connection to a machine that does not answer times out after this time.
constexpr Duration kTcpTimeout = 10s;
// Duration of a hung program's call: longer than any story.
constexpr Duration kHang = 24h;
// After the grace period a launcher waits this much longer for the remaining ranks of a learner
// that lost one.
constexpr Duration kBeyondGrace = 5s;

Schedule MakeSchedule(const DataSpec& data) {
  Result<Schedule> schedule = Schedule::Make(data);
  CHECK(schedule.has_value(), "the simulation's data specification is valid");
  return *std::move(schedule);
}

}  // namespace

// The checkpoint store, as one learner has it mounted.
class World::Volume final : public CheckpointStore {
 public:
  Volume(World& world, LearnerId self) : world_(world), self_(std::move(self)) {}
  Status Put(std::string_view name, std::span<const std::span<const std::byte>> parts) override {
    return world_.store.Put(name, parts);
  }
  Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) override {
    RETURN_IF_ERROR(world_.on_read(self_, name, out.size()));
    return world_.store.Read(name, offset, out);
  }
  Result<std::vector<StoredObject>> List(std::string_view prefix) override {
    return world_.store.List(prefix);
  }
  Status Replace(std::string_view from, std::string_view to) override {
    return world_.store.Replace(from, to);
  }
  Status Remove(std::string_view name) override { return world_.store.Remove(name); }

 private:
  World& world_;
  const LearnerId self_;
};

// metrics.jsonl on the volume.
class World::Metrics final : public MetricsSink {
 public:
  explicit Metrics(std::vector<std::string>& lines) : lines_(lines) {}
  void Append(Tick tick, std::string_view line) override {
    if (lines_.empty() || TickOf(lines_.back()) < tick) lines_.emplace_back(line);
  }
  void CutFrom(Tick tick) override {
    std::erase_if(lines_, [&](const std::string& line) { return TickOf(line) >= tick; });
  }
  static Tick TickOf(const std::string& line) {
    return std::stoull(line.substr(line.find("\"tick\":") + 7));
  }

 private:
  std::vector<std::string>& lines_;
};

class World::Ledger final : public SampleLedger {
 public:
  Ledger(World& world, LearnerId self) : world_(world), self_(std::move(self)) {}
  void Computed(MembershipId membership, Tick tick, const std::vector<ShardTask>& tasks) override {
    auto& shards = world_.computed_[{tick, membership}];
    for (const ShardTask& task : tasks) {
      if (!shards.emplace(task.shard, task.samples).second) {
        world_.Wrong(Format("shard {} is computed twice in tick {}", task.shard, tick));
      }
    }
  }
  void Committed(MembershipId membership, Tick tick) override {
    if (world_.trace_.on()) {
      world_.trace_.Note(world_.loop_.Now(), ToString(self_),
                         Format("commits tick {} in {}", tick, ToString(membership)));
    }
    MembershipId& last = world_.committed_[tick];
    last = std::max(last, membership);
  }

 private:
  World& world_;
  const LearnerId self_;
};

World::World(std::uint64_t seed, JobSpec job, const Reference& reference, Speeds speeds)
    : job_(std::move(job)),
      schedule_(MakeSchedule(job_.data)),
      reference_(reference),
      speeds_(speeds),
      random_(seed),
      network_(loop_, [this](const LearnerId&,
                             const LearnerId&) { return Between(50us, speeds_.max_network); }),
      rounds_(loop_, ~seed, [this](const std::string& wrong) { Wrong(wrong); }) {
  on_message = [](const LearnerId&, const LearnerMessage&) {};
  on_effect = [](CoordinatorHost&, const CoordinatorEffect&) { return true; };
  on_shard = [](const LearnerId&, const ShardTask&) {};
  on_read = [](const LearnerId&, std::string_view, std::size_t) { return Status(); };
  volume_hangs = [](const LearnerId&) { return 0ms; };
  program_hangs = [](const LearnerId&) { return false; };
  commits_take = [](const LearnerId&) { return 0ms; };
  on_sent = on_received = [](const LearnerId&, const LearnerId&, const Frame&) {};
  on_connected = [](const LearnerId&, const LearnerId&) {};
  NewHost(1, 0);
  loop_.Post([this] { Operate(); });
}

World::~World() {
  for (auto& [name, pod] : pods_) Destroy(*pod);
}

// ---- Time and chance ----

bool World::RunUntil(const std::function<bool()>& done, Duration limit) {
  return loop_.RunUntilTrue([&] { return faulty_ || done(); }, limit) && !faulty_;
}

Duration World::Between(Duration least, Duration most) {
  if (most <= least) return least;
  return least + Duration(static_cast<std::int64_t>(
                     random_() % static_cast<std::uint64_t>((most - least).count() + 1)));
}

bool World::Chance(double probability) {
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

int World::Pick(int count) {
  return static_cast<int>(random_() % static_cast<std::uint64_t>(count));
}

// ---- The operator ----

void World::Want(int learners) { wanted_ = learners; }

void World::Operate() {
  if (!operator_paused_) {
    int live = 0;
    for (auto& [name, pod] : pods_) {
      if (pod->id.local_rank > 0) continue;
      if (!Runs(*pod)) pod->end_seen = true;
      if (Runs(*pod) && pod->wanted && !pod->terminating) ++live;
    }
    for (; completed_ == 0 && live < wanted_; ++live) AddPod();
    // The youngest pods leave first.
    for (auto it = pods_.rbegin(); it != pods_.rend() && live > wanted_; ++it) {
      Pod& pod = *it->second;
      if (pod.id.local_rank > 0 || !Runs(pod) || !pod.wanted || pod.terminating) continue;
      pod.wanted = false;
      --live;
    }
    if (completed_ > 0) DismissIdle();
    PushPlan();
  }
  loop_.PostAfter(Between(speeds_.operator_every / 2, speeds_.operator_every),
                  [this] { Operate(); });
}

// The operator deletes the pods that were never members. Members end by themselves.
void World::DismissIdle() {
  for (const auto& [name, pod] : pods_) {
    const bool idle = std::ranges::all_of(
        RanksOf(*pod), [](const Pod* rank) { return rank->entered == MembershipId{}; });
    if (pod->id.local_rank == 0 && idle) Terminate(*pod, job_.grace);
  }
}

void World::PushPlan() {
  ++version_.sequence;
  Plan plan{.version = version_, .learners = {}};
  for (const auto& [name, pod] : pods_) {
    if (pod->id.local_rank > 0) continue;
    const WantedState state = pod->end_seen                      ? WantedState::kEnded
                              : pod->wanted && !pod->terminating ? WantedState::kWanted
                                                                 : WantedState::kLeaving;
    plan.learners.push_back({.name = name, .pod_uid = pod->id.pod_uid, .state = state});
  }
  loop_.PostAfter(Between(0ms, speeds_.max_network),
                  [host = std::weak_ptr(hosts_.back()), plan = std::move(plan)] {
                    if (const auto living = host.lock()) living->PushPlan(plan);
                  });
}

// ---- Coordinators ----

void World::NewHost(std::uint64_t term, std::uint64_t counter) {
  hosts_.push_back(std::make_shared<CoordinatorHost>(
      loop_,
      CoordinatorOptions{.term = term, .counter = counter, .max_learners = job_.max_learners},
      CoordinatorHost::Hooks{
          .delay = [this] { return Between(50us, speeds_.max_network); },
          .persist = [this, term](std::uint64_t value) { counters_[term] = value; },
          .on_effect =
              [this](CoordinatorHost& host, const CoordinatorEffect& effect) {
                if (const auto* send = std::get_if<SendMessage>(&effect)) {
                  if (trace_.on()) {
                    trace_.Note(loop_.Now(), Format("coordinator {}", host.term()),
                                Encode(send->message));
                  }
                  if (const auto* recover = std::get_if<Recover>(&send->message)) {
                    NoteMembership(recover->membership);
                  } else if (const auto* prepare = std::get_if<Prepare>(&send->message)) {
                    NoteMembership(prepare->membership);
                  }
                }
                return on_effect(host, effect);
              }}));
  hosts_.back()->Start();
}

void World::StartCoordinator() { NewHost(hosts_.back()->term() + 1, 0); }

void World::RestartCoordinator() {
  const std::uint64_t term = hosts_.back()->term();
  CHECK(!hosts_.back()->alive(), "a pod has one process at a time");
  NewHost(term, counters_[term]);
}

// ---- Learners ----

Pod& World::pod(std::string_view name) {
  const auto found = pods_.find(std::string(name));
  CHECK(found != pods_.end(), "there is a pod of that name");
  return *found->second;
}

std::vector<Pod*> World::running() {
  std::vector<Pod*> all;
  for (auto& [name, pod] : pods_) {
    if (pod->running) all.push_back(pod.get());
  }
  return all;
}

void World::AddPod() {
  const int number = last_pod_++;
  const LearnerId first{
      .name = Format("l-{:03}", number), .pod_uid = Format("u{}", number), .nonce = random_()};
  for (int rank = 0; rank < job_.ranks; ++rank) {
    auto pod = std::make_unique<Pod>();
    pod->id = first;
    pod->id.local_rank = rank;
    if (number % 3 == 1) pod->slowness = speeds_.slowness;
    pod->running = true;
    Pod* const added = pod.get();
    pods_.emplace(rank == 0 ? first.name : Format("{}.{}", first.name, rank), std::move(pod));
    loop_.PostAfter(Between(1ms, speeds_.max_pod_start), [this, added] {
      if (added->running) Build(*added);
    });
  }
}

std::vector<Pod*> World::RanksOf(const Pod& pod) const {
  std::vector<Pod*> ranks;
  for (auto it = pods_.lower_bound(pod.id.name);
       it != pods_.end() && SameLearner(it->second->id, pod.id); ++it) {
    ranks.push_back(it->second.get());
  }
  return ranks;
}

bool World::Runs(const Pod& pod) const {
  return std::ranges::any_of(RanksOf(pod), [](const Pod* rank) { return rank->running; });
}

void World::Build(Pod& pod) {
  pod.gate = std::make_shared<Gate>();
  pod.loop = std::make_unique<GatedLoop>(loop_, pod.gate, [this] {
    return Chance(speeds_.timers_late) ? Between(0ms, speeds_.max_timers_late) : 0ms;
  });
  pod.program = std::make_unique<ToyProgram>(job_.data, job_.ballast_bytes, job_.habits);
  pod.compute = std::make_unique<SimCompute>(
      *pod.loop, *pod.program, MostShards(job_.data),
      [this, &pod](std::size_t shards) -> Duration {
        if (shards > 0 && program_hangs(pod.id)) return kHang;
        const Duration more = shards == 0 ? commits_take(pod.id) : 0ms;
        return more + Between(10us, 1ms) +
               Between(speeds_.shard / 2, speeds_.shard) * static_cast<std::int64_t>(shards) *
                   pod.slowness;
      },
      [this, &pod](const ShardTask& task) { NoteShard(pod, task); },
      [this, &pod] { CheckState(pod); });
  if (job_.all_on_devices || pod.id.nonce % 2 == 1) {
    pod.rounds = std::make_unique<SimRounds>(rounds_, *pod.loop, ToString(pod.id));
    pod.compute->keeps_means_too = true;
    pod.compute->rounds = pod.rounds.get();
  }
  pod.transport = std::make_unique<GatedTransport>(
      network_.NewTransport(pod.id), pod.gate,
      [this, &pod](const LearnerId& peer, Frame& frame, bool sent) {
        if (sent) {
          on_sent(pod.id, peer, frame);
          NoteFrame(pod, "sends", peer, frame);
        } else {
          on_received(pod.id, peer, frame);
        }
      },
      [this, &pod](const LearnerId& peer) { on_connected(pod.id, peer); });
  pod.volume = std::make_unique<Volume>(*this, pod.id);
  pod.checkpointer = NewInLoopCheckpointer(*pod.loop, *pod.volume, [this, &pod] {
    return volume_hangs(pod.id) + Between(1ms, speeds_.max_disk);
  });
  pod.metrics = std::make_unique<Metrics>(metrics_);
  pod.ledger = std::make_unique<Ledger>(*this, pod.id);
  pod.link = std::make_unique<SimLink>(
      loop_, pod.gate,
      SimLink::Hooks{.delay = [this] { return Between(50us, speeds_.max_network); },
                     .service = [this]() -> std::shared_ptr<CoordinatorHost> {
                       return service ? hosts_[*service] : hosts_.back();
                     },
                     .on_send =
                         [this, &pod](const LearnerMessage& message) {
                           if (trace_.on()) {
                             trace_.Note(loop_.Now(), ToString(pod.id), Encode(message));
                           }
                           if (const auto* entered = std::get_if<Entered>(&message)) {
                             NoteMembership(entered->membership);
                             pod.entered = entered->membership.id;
                           }
                           if (const auto* opened = std::get_if<Opened>(&message)) {
                             opened_ = std::max(opened_, opened->membership);
                           }
                           if (const auto* left = std::get_if<Left>(&message))
                             CheckHolders(pod, left->message == "left as asked");
                           if (const auto* progress = std::get_if<Progress>(&message))
                             CheckNoise(*progress);
                           on_message(pod.id, message);
                         }});
  pod.learner = std::make_unique<LearnerLoop>(
      LearnerOptions{.self = pod.id,
                     .ranks = job_.ranks,
                     .fingerprint = {{"framework", "toy"}},
                     .framework = "toy",
                     .reproducibility = job_.reproducibility,
                     .checkpoint_every_steps = job_.checkpoint_every_steps,
                     .checkpoint_every = job_.checkpoint_every,
                     .checkpoint_slice_bytes = job_.checkpoint_slice_bytes,
                     .check_state_every_steps = 1,
                     .buckets = job_.buckets,
                     .buckets_of_rounds = {.first = 16, .rest = 16},
                     .grace = job_.grace,
                     .step_timeout = job_.step_timeout,
                     .state_slice_bytes = 100,
                     .state_batch_bytes = job_.state_batch_bytes,
                     .backlog_bytes = job_.backlog_bytes},
      schedule_,
      LearnerParts{.loop = *pod.loop,
                   .link = pod.link.get(),
                   .transport = pod.transport.get(),
                   .compute = *pod.compute,
                   .checkpointer = *pod.checkpointer,
                   .metrics = *pod.metrics,
                   .ledger = pod.ledger.get()},
      [this, &pod](const LearnerExit& exit) { OnExit(pod, exit); });
  pod.learner->Start();
}

void World::NoteFrame(const Pod& pod, std::string_view verb, const LearnerId& peer,
                      const Frame& frame) {
  if (!trace_.on()) return;
  const FrameHeader& head = frame.header;
  trace_.Note(
      loop_.Now(), ToString(pod.id),
      Format("{} {}: kind {} of {}, tick {}, {} {} {}, {} bytes {:016x}", verb, ToString(peer),
             static_cast<int>(head.kind), ToString(head.membership), head.tick, head.bucket,
             head.node, head.piece, frame.payload.view.size(), DigestOf(frame.payload.view)));
}

void World::OnExit(Pod& pod, const LearnerExit& exit) {
  if (trace_.on()) {
    trace_.Note(loop_.Now(), ToString(pod.id),
                Format("exits after step {}: {}", exit.step, exit.message));
  }
  pod.exit = exit;
  if (exit.reason == LeftReason::kFailed && !exit.program_hangs) {
    Wrong(Format("{} failed: {}", pod.id.name, exit.message));
  } else if (exit.reason == LeftReason::kCompleted) {
    ++completed_;
    if (!ended_with_)
      ended_with_ = bitwise() ? reference_.parameters_sha256 : exit.parameters_sha256;
    if (exit.parameters_sha256 != *ended_with_) {
      Wrong(pod.id.name + " completed with another model");
    }
  }
  // Destroyed later, because its own callback is running.
  loop_.Post([this, &pod] { Destroy(pod); });
}

void World::Destroy(Pod& pod) {
  Look();
  pod.running = false;
  pod.learner.reset();
  pod.link.reset();
  pod.checkpointer.reset();
  pod.volume.reset();
  pod.compute.reset();
  pod.rounds.reset();
  pod.transport.reset();
  pod.program.reset();
  pod.metrics.reset();
  pod.ledger.reset();
  pod.loop.reset();
  pod.gate.reset();
}

void World::Kill(Pod& pod) {
  if (!pod.running) return;
  Die(pod);
  // As the launcher does: the other ranks cannot train without this one.
  for (Pod* const rank : RanksOf(pod)) {
    if (!rank->running) continue;
    Leave(*rank, job_.grace);
    loop_.PostAfter(job_.grace + kBeyondGrace, [this, rank] { Die(*rank); });
  }
}

void World::Die(Pod& pod) {
  if (!pod.running) return;
  log::Info("killed", {{"learner", pod.id.name}, {"localRank", pod.id.local_rank}});
  Destroy(pod);
  pod.killed_at = loop_.Now();
  CheckHolders(pod, false);
}

void World::Vanish(Pod& pod) {
  if (!pod.running || pod.gate == nullptr || pod.vanished) return;
  log::Info("vanished", {{"learner", pod.id.name}});
  for (Pod* const rank : RanksOf(pod)) {
    if (rank->gate == nullptr) {  // not started yet, or gone
      Destroy(*rank);
      continue;
    }
    rank->vanished = true;
    rank->gate->Stall();
    for (const auto& [name, other] : pods_) {
      if (SameLearner(other->id, pod.id)) continue;
      CutFor(rank->id, other->id, kTcpTimeout, /*silent=*/true);
    }
    loop_.PostAfter(kTcpTimeout, [this, rank] { Die(*rank); });
  }
}

void World::Stall(Pod& pod, Duration duration) {
  if (!pod.running || pod.gate == nullptr || pod.gate->stalled()) return;
  log::Info("stalled", {{"learner", pod.id.name}, {"seconds", ToSeconds(duration)}});
  pod.gate->Stall();
  loop_.PostAfter(duration, [gate = std::weak_ptr(pod.gate), &pod] {
    if (const auto living = gate.lock(); living && !pod.vanished) living->Resume();
  });
}

void World::Terminate(Pod& pod, Duration grace) {
  if (!Runs(pod) || pod.terminating) return;
  for (Pod* const rank : RanksOf(pod)) {
    rank->terminating = true;
    Leave(*rank, grace);
  }
}

void World::Leave(Pod& pod, Duration grace) {
  if (!pod.running || std::exchange(pod.told, true)) return;
  if (pod.learner == nullptr) return Destroy(pod);
  pod.gate->Run([&pod, grace] { pod.learner->RequestLeave(grace); });
}

void World::CutFor(const LearnerId& a, const LearnerId& b, Duration duration, bool silent) {
  if (!cut_.emplace(std::min(a, b), std::max(a, b)).second) return;
  log::Info("cut", {{"from", a.name}, {"to", b.name}, {"silent", silent}});
  if (silent) {
    network_.Silence(a, b);
  } else {
    network_.Cut(a, b);
  }
  loop_.PostAfter(duration, [this, a, b] {
    if (cut_.erase({std::min(a, b), std::max(a, b)}) > 0) network_.Mend(a, b);
  });
}

void World::MendAll() {
  for (const auto& [a, b] : std::exchange(cut_, {})) network_.Mend(a, b);
  for (auto& [name, pod] : pods_) {
    if (pod->running && pod->gate != nullptr && pod->gate->stalled() && !pod->vanished) {
      pod->gate->Resume();
    }
  }
}

// ---- What must always hold ----

void World::Wrong(const std::string& what) {
  if (std::exchange(faulty_, true)) return;
  ADD_FAILURE() << what << " (at " << ToSeconds(loop_.Now().time_since_epoch()) << " s)";
}

// Every learner has the state of the undisturbed training at the same position: no sample was lost,
// used twice or used in another order, and no buffer or sum was wrong.
void World::CheckState(Pod& pod) {
  const auto known = reference_.hash_at.find(pod.program->position());
  // In Statistical mode the bits of a step depend on the size of the membership. Members of one
  // membership compare their states themselves.
  if (bitwise() && (known == reference_.hash_at.end() || pod.program->Hash() != known->second)) {
    Wrong(Format("{} has another state after step {}", pod.id.name, pod.program->steps()));
  }
  pod.holds_state = true;
  CheckProgress();
}

// No learner computes a shard of a tick twice, whatever happens during the tick.
void World::NoteShard(Pod& pod, const ShardTask& task) {
  on_shard(pod.id, task);
  if (task.samples.empty() || !bitwise()) return;
  if (!pod.computed.emplace(task.kind, task.step, task.shard, task.samples.front()).second) {
    Wrong(Format("{} computes shard {} of step {} twice", pod.id.name, task.shard, task.step));
  }
}

void World::Look() {
  for (auto& [name, pod] : pods_) {
    if (!pod->running || pod->learner == nullptr) continue;
    pod->applied = pod->learner->applied_ticks();
    furthest_ = std::max(furthest_, pod->applied);
  }
}

void World::NoteMembership(const Membership& membership) {
  const auto [known, added] = members_of_.try_emplace(membership.id, membership);
  if (!added && known->second != membership) {
    Wrong(Format("two memberships {}", ToString(membership.id)));
  }
}

// A learner that leaves gracefully is never the only holder of a state. Two exceptions: it cannot
// know of a death in the last instants, while it looked for a final model and exited; and it counts
// as lost when another rank of its learner was lost, because training continued without it, or
// would have.
void World::CheckHolders(const Pod& gone, bool gracefully) {
  const TimePoint known =
      loop_.Now() - speeds_.max_network - speeds_.max_disk - 2 * speeds_.max_timers_late;
  Look();
  if (!gone.holds_state) return;
  Tick most = 0;
  bool held = false;
  for (const auto& [name, pod] : pods_) {
    if (pod.get() == &gone || !pod->holds_state) continue;
    if (!pod->running) {
      if (gracefully && pod->killed_at > known) most = std::max(most, pod->applied);
      continue;
    }
    held = true;
    most = std::max(most, pod->applied);
  }
  const std::uint64_t steps = schedule().StepsBefore(gone.applied);
  const bool lost_with_another = held && std::ranges::any_of(RanksOf(gone), [](const Pod* rank) {
                                   return rank->killed_at.has_value();
                                 });
  if (gracefully && !lost_with_another && gone.entered >= opened_ && most < gone.applied &&
      newest_step() < steps && !ReadFinal(store)) {
    Wrong(Format("{} left with the only state of tick {}", gone.id.name, gone.applied));
  }
  if (!gracefully && !held) {
    ++state_losses_;
  }
}

std::uint64_t World::newest_step() {
  const Result<StoredCheckpoint> newest = NewestCheckpoint(store);
  return newest ? newest->step : 0;
}

// The coordinator reports only committed progress.
void World::CheckProgress() {
  Look();
  const std::shared_ptr<CoordinatorHost>& host = hosts_.back();
  if (!host->alive()) return;
  const JobProgress progress = host->core().progress();
  if (progress.tick.value_or(0) > furthest_) {
    Wrong(Format("tick {} is reported, {} is the furthest", *progress.tick, furthest_));
  }
}

std::string World::Describe() const {
  std::string text;
  for (const auto& [name, pod] : pods_) {
    if (!pod->running) continue;
    text += Format("{}: tick {}{}{}{}\n", name, pod->applied, pod->wanted ? "" : " unwanted",
                   pod->terminating ? " terminating" : "", pod->vanished ? " vanished" : "");
  }
  return text + Encode(hosts_.back()->core().progress());
}

// Each sample was used once per epoch, whatever happened. (The last batch of an epoch may be
// short.)
void World::CheckLedger() {
  std::vector<int> used(job_.data.train_samples);
  for (Tick tick = 0; tick < reference_.ticks; ++tick) {
    const TickPlan plan = schedule().At(tick);
    if (plan.kind != TickKind::kTrain) continue;
    const auto committed = committed_.find(tick);
    if (committed == committed_.end()) return Wrong(Format("tick {} was not committed", tick));
    const auto& shards = computed_[{tick, committed->second}];
    if (bitwise() && std::ssize(shards) != job_.data.logical_shards << plan.doublings) {
      return Wrong(Format("tick {} has {} shards", tick, shards.size()));
    }
    for (const auto& [shard, samples] : shards) {
      for (const std::uint64_t sample : samples) ++used.at(sample);
    }
    if (!plan.last_of_kind) continue;
    if (std::ranges::any_of(used, [](int times) { return times != 1; })) {
      return Wrong(Format("epoch {} did not use each sample once", plan.epoch));
    }
    std::ranges::fill(used, 0);
  }
  // Steps may end within an epoch.
  if (std::ranges::any_of(used, [](int times) { return times > 1; })) {
    Wrong("the last epoch used a sample twice");
  }
}

void World::CheckNoise(const Progress& progress) {
  if (!bitwise() || !progress.stats) return;
  const auto known = reference_.noise_after.find(progress.step);
  if (known == reference_.noise_after.end() ||
      known->second.scale() != progress.stats->noise_scale) {
    Wrong(Format("another noise scale is reported after step {}", progress.step));
  }
}

void World::CheckNoise(const Manifest& manifest) {
  if (!bitwise()) return;
  const auto known = reference_.noise_after.find(manifest.position.step);
  BatchSegments batches = schedule().segments();
  std::erase_if(batches, [&](const BatchSegment& segment) {
    return schedule().TicksBefore(segment.epoch) > manifest.position.tick;
  });
  if (manifest.position.batches != batches) {
    Wrong(Format("a manifest has other batches after step {}", manifest.position.step));
  }
  if (known == reference_.noise_after.end() || known->second != manifest.position.noise) {
    Wrong(Format("a manifest has another noise window after step {}", manifest.position.step));
  }
}

void World::CheckCheckpoints() {
  const Result<std::vector<StoredCheckpoint>> steps = ListSteps(store);
  ASSERT_TRUE(steps) << steps.error();
  for (const StoredCheckpoint& stored : *steps) {
    const Result<Manifest> manifest = ReadManifest(store, stored);
    if (manifest) CheckNoise(*manifest);
  }
}

void World::CheckTheEnd(bool one_at_a_time) {
  if (faulty_) return;
  CheckLedger();
  CheckCheckpoints();
  const Result<Manifest> final = ReadFinal(store);
  ASSERT_TRUE(final) << "no final model: " << final.error();
  EXPECT_EQ(final->parameters_sha256, ended_with_);
  CheckNoise(*final);
  for (const auto& [name, pod] : pods_) EXPECT_FALSE(pod->running) << name << " is still there";
  if (!one_at_a_time) return;
  Tick last = 0;
  int tests = 0;
  for (const std::string& line : metrics_) {
    EXPECT_GE(Metrics::TickOf(line), last) << "metrics are not in order: " << line;
    last = Metrics::TickOf(line);
    tests += line.contains("\"kind\":\"test\"") ? 1 : 0;
  }
  if (job_.data.test_samples > 0) {
    int evaluations = 0;
    for (Tick tick = 0; tick < reference_.ticks; ++tick) {
      const TickPlan plan = schedule().At(tick);
      evaluations += plan.kind == TickKind::kEvaluate && plan.last_of_kind ? 1 : 0;
    }
    EXPECT_EQ(tests, evaluations) << "one line per evaluation";
  }
  EXPECT_EQ(final->position.tick, reference_.ticks);
}

}  // namespace pliant::sim
