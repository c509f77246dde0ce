#include "tests/simulation/seeds.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/format.h"
#include "tests/simulation/world.h"
#include "trainer/data/permutation.h"

namespace pliant::sim {
namespace {

using namespace std::chrono_literals;

// References by data: many seeds share one reference.
const Reference& ReferenceOf(const DataSpec& data, const Habits& habits) {
  static std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                             std::uint64_t, int, int, Habits>,
                  Reference>
      known;
  const auto key = std::tuple(data.train_samples, data.test_samples, data.epochs, data.max_steps,
                              data.evaluate_every, data.logical_shards, data.max_doublings, habits);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, ComputeReference(*Schedule::Make(data), habits)).first->second;
}

// Not drawn from the generator, so that the other seeds stay the same.
Habits HabitsOf(std::uint64_t seed, const Schedule& schedule) {
  const std::uint64_t hash = HashWords({seed, 1});
  const bool ends_early = hash % 4 == 0;
  return {.wants_evaluation_results = hash / 4 % 4 == 0,
          .ends_at_step = ends_early ? 1 + hash / 16 % schedule.total_steps() : 0,
          // A batch grows by the noise of samples, so such a program weighs by them.
          .weighs = hash / 65536 % 3 == 0 && schedule.spec().max_doublings == 0};
}

// A quarter of the seeds use jobs and faults that were added later: any size of the last batch,
// learners of two ranks, a network split in two. The other seeds stay the same.
bool HasLaterKinds(std::uint64_t seed) { return seed % 8 == 4 || seed % 8 == 5; }

// Samples in the last batch of an epoch. With 11 of 16 every shard has a sample; the smallest sizes
// leave most shards without one.
std::uint64_t RestOf(std::uint64_t seed, int shards) {
  if (!HasLaterKinds(seed)) return 11;
  const auto all = static_cast<std::uint64_t>(shards);
  const std::uint64_t rests[] = {16, 1, all - 1, all, all + 1};
  return rests[HashWords({seed, 2}) % std::size(rests)];
}

// The batch of some bitwise jobs may grow: they have more samples, so that it pays. Not drawn from
// the generator either.
void MayGrow(std::uint64_t seed, JobSpec& job) {
  if (HashWords({seed, 3}) % 6 != 0 || job.reproducibility != Reproducibility::kBitwise) return;
  job.data.train_samples *= 8;
  job.data.max_doublings = 2;
}

// Some jobs of later seeds are limited and evaluated by steps.
void MayCountSteps(std::uint64_t seed, JobSpec& job) {
  const std::uint64_t hash = HashWords({seed, 5});
  if (seed <= 500 || hash % 4 != 0) return;
  if (hash / 4 % 2 == 0) job.data.max_steps = 8 + hash / 8 % 40;
  if (hash / 512 % 4 == 0 && job.data.max_steps != 0) job.data.epochs = 0;
  if (job.data.test_samples > 0 && job.data.max_doublings == 0) {
    job.data.evaluate_every = hash / 2048 % 9;
  }
}

JobSpec DrawJob(std::uint64_t seed, std::mt19937_64& random) {
  const int shards = 1 << (1 + random() % 3);
  // 2 to 5 steps per epoch, most last batches short; with and without evaluations of 1 or 2 ticks.
  const DataSpec data{.train_samples = 16U * (1 + random() % 4) + RestOf(seed, shards),
                      .test_samples = (random() % 3) * 12,
                      .epochs = 8 + random() % 3 * 4,
                      .global_batch_size = 16,
                      .logical_shards = shards,
                      .seed = 7};
  return {.data = data,
          .max_learners = 2 + static_cast<int>(random() % 4),
          .checkpoint_every_steps = 1 + random() % 12,
          .checkpoint_slice_bytes = std::size_t{1} << (random() % 2 == 0 ? 0 : 30),
          .reproducibility =
              random() % 4 == 0 ? Reproducibility::kStatistical : Reproducibility::kBitwise,
          .grace = std::chrono::seconds(2 + random() % 20),
          // In some jobs a member that catches up holds the others back, in some it does not.
          .backlog_bytes = data.epochs % 8 == 0 ? 0U : 1U << 20,
          .ranks = HasLaterKinds(seed) && seed % 2 == 1 ? 2 : 1,
          .all_on_devices = HashWords({seed, 4}) % 2 == 0};
}

// The rates of faults. Each seed has its own mixture: all faults at high rates would leave no time
// for training.
struct Mixture {
  double kill = 0;
  double vanish = 0;
  double stall = 0;
  double terminate = 0;
  double kill_all = 0;
  double suspend = 0;
  double scale = 0;
  double cut = 0;
  double drop_coordinator_connection = 0;
  double kill_coordinator = 0;
  double kill_coordinator_midway = 0;  // between the effects of one event
  double second_coordinator = 0;       // while the old coordinator still runs
  double disk = 0;
  double split = 0;  // splits the learners' network in two
};

// `later_kinds`: draw the later faults, too.
Mixture DrawMixture(World& world, bool later_kinds) {
  const auto maybe = [&](double most) {
    return world.Chance(0.4) ? most * world.Pick(100) / 100 : 0;
  };
  return {.kill = maybe(1),
          .vanish = maybe(0.3),
          .stall = maybe(0.5),
          .terminate = maybe(1),
          .kill_all = maybe(0.1),
          .suspend = maybe(0.3),
          .scale = maybe(1.5),
          .cut = maybe(1),
          .drop_coordinator_connection = maybe(1),
          .kill_coordinator = maybe(0.6),
          .kill_coordinator_midway = maybe(0.6),
          .second_coordinator = maybe(0.3),
          .disk = maybe(0.3),
          .split = later_kinds ? maybe(0.2) : 0};
}

class Chaos {
 public:
  Chaos(World& world, const JobSpec& job, bool later_kinds)
      : world_(world), job_(job), mix_(DrawMixture(world, later_kinds)) {
    world_.on_effect = [this](CoordinatorHost& host, const CoordinatorEffect&) {
      if (effects_to_death_ == 0 || &host != &world_.coordinator()) return true;
      if (--effects_to_death_ > 0) return true;
      world_.loop().PostAfter(world_.Between(0ms, 2s), [this] { ReviveCoordinator(); });
      return false;
    };
    world_.store.fault = [this](std::uint64_t, std::string_view) {
      if (!on_ || !world_.Chance(mix_.disk)) return MemoryStore::Fault::kNone;
      return world_.Chance(0.5) ? MemoryStore::Fault::kFail : MemoryStore::Fault::kFailDone;
    };
  }

  // One round of faults. Rates are per second.
  void Round(double seconds) {
    const auto now = [&](double rate) { return world_.Chance(rate * seconds); };
    if (now(mix_.kill)) WithOne([&](Pod& pod) { world_.Kill(pod); });
    if (now(mix_.vanish)) WithOne([&](Pod& pod) { world_.Vanish(pod); });
    if (now(mix_.stall)) WithOne([&](Pod& pod) { world_.Stall(pod, world_.Between(100ms, 25s)); });
    if (now(mix_.terminate)) {
      WithOne([&](Pod& pod) { world_.Terminate(pod, world_.Between(500ms, job_.grace)); });
    }
    if (now(mix_.kill_all)) {
      for (Pod* const pod : world_.running()) world_.Kill(*pod);
    }
    if (now(mix_.suspend)) world_.Want(0);
    if (now(mix_.scale)) world_.Want(1 + world_.Pick(job_.max_learners));
    if (now(mix_.cut)) {
      WithOne([&](Pod& a) {
        WithOne([&](Pod& b) {
          if (&a == &b) return;
          const bool silent = world_.Chance(0.3);
          world_.CutFor(a.id, b.id, world_.Between(1ms, silent ? 10s : 20s), silent);
        });
      });
    }
    if (now(mix_.drop_coordinator_connection)) {
      const auto connections = world_.coordinator().connections();
      if (!connections.empty()) {
        world_.coordinator().Drop(
            connections[static_cast<std::size_t>(world_.Pick(static_cast<int>(connections.size())))]
                ->id);
      }
    }
    if (now(mix_.kill_coordinator)) KillCoordinator();
    if (now(mix_.kill_coordinator_midway)) effects_to_death_ = 1 + world_.Pick(12);
    if (now(mix_.second_coordinator)) SecondCoordinator();
    // Seeds without this fault must not draw a number for it.
    if (mix_.split > 0 && now(mix_.split)) Split();
  }

  // Whether no living learner can be taken for lost. (The remaining ranks of a learner that lost
  // one can.)
  bool OneMembershipAtATime() const {
    return mix_.stall == 0 && mix_.vanish == 0 && mix_.cut == 0 &&
           mix_.drop_coordinator_connection == 0 && mix_.kill_coordinator == 0 &&
           mix_.kill_coordinator_midway == 0 && mix_.second_coordinator == 0 && mix_.split == 0 &&
           (job_.ranks == 1 || mix_.kill == 0);
  }

  void Stop() {
    on_ = false;
    effects_to_death_ = 0;
    world_.MendAll();
    world_.service.reset();
    for (std::size_t i = 0; i + 1 < world_.hosts().size(); ++i) world_.hosts()[i]->Kill();
    ReviveCoordinator();
  }

 private:
  void WithOne(const std::function<void(Pod&)>& act) {
    const std::vector<Pod*> pods = world_.running();
    if (!pods.empty())
      act(*pods[static_cast<std::size_t>(world_.Pick(static_cast<int>(pods.size())))]);
  }

  // Each learner is on one of two sides, with all its ranks; the coordinator reaches both.
  void Split() {
    const bool silent = world_.Chance(0.3);
    const Duration time = world_.Between(1ms, silent ? 10s : 20s);
    const std::vector<Pod*> pods = world_.running();
    std::map<std::string, bool> side;
    for (const Pod* const pod : pods) {
      if (!side.contains(pod->id.name)) side[pod->id.name] = world_.Chance(0.5);
    }
    for (std::size_t i = 0; i < pods.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const LearnerId& a = pods[i]->id;
        const LearnerId& b = pods[j]->id;
        if (side[a.name] != side[b.name]) world_.CutFor(a, b, time, silent);
      }
    }
  }

  void KillCoordinator() {
    if (!world_.coordinator().alive()) return;
    world_.coordinator().Kill();
    world_.loop().PostAfter(world_.Between(0ms, 6s), [this] { ReviveCoordinator(); });
  }

  void ReviveCoordinator() {
    if (world_.coordinator().alive()) return;
    if (world_.Chance(0.5)) {
      world_.RestartCoordinator();
    } else {
      world_.StartCoordinator();
    }
  }

  // The operator believes that the old coordinator is dead: only the operator cannot reach it.
  void SecondCoordinator() {
    if (!world_.coordinator().alive()) return;
    const std::size_t old = world_.hosts().size() - 1;
    world_.StartCoordinator();
    if (world_.Chance(0.5)) world_.service = old;  // the Service still selects the old one
    world_.loop().PostAfter(world_.Between(100ms, 15s), [this] { world_.service.reset(); });
    world_.loop().PostAfter(world_.Between(1s, 30s), [this, old] { world_.hosts()[old]->Kill(); });
  }

  World& world_;
  const JobSpec& job_;
  const Mixture mix_;
  bool on_ = true;
  int effects_to_death_ = 0;
};

}  // namespace

std::string RunSeed(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  JobSpec job = DrawJob(seed, random);
  MayGrow(seed, job);
  MayCountSteps(seed, job);
  job.habits = HabitsOf(seed, *Schedule::Make(job.data));
  const Speeds speeds{.max_network = std::chrono::milliseconds(1 + random() % 40),
                      .shard = std::chrono::milliseconds(5 + random() % 60),
                      .slowness = seed % 4 == 0 ? 5 : 1};
  World world(random(), job, ReferenceOf(job.data, job.habits), speeds);
  world.Want(1 + world.Pick(job.max_learners));
  {
    Chaos chaos(world, job, HasLaterKinds(seed));
    const Duration round = 200ms;
    const int rounds = 50 + world.Pick(300);
    for (int i = 0; i < rounds && !world.completed() && !world.faulty(); ++i) {
      chaos.Round(ToSeconds(round));
      world.loop().RunFor(round);
    }
    chaos.Stop();
    // From here on no fault occurs: the job completes and all learners leave.
    world.Want(1 + world.Pick(job.max_learners));
    // One learner alone may need more than ten minutes for all steps.
    const bool completed = world.RunUntil([&] { return world.completed(); }, 30min);
    if (!completed && !world.faulty()) {
      ADD_FAILURE() << "the job does not complete\n" << world.Describe();
    } else if (!world.RunUntil([&] { return world.running().empty(); }, 2min) && !world.faulty()) {
      ADD_FAILURE() << "some learners still run\n" << world.Describe();
    }
    world.CheckTheEnd(chaos.OneMembershipAtATime());
  }
  return Format(
      "{} memberships, {:.1f} s, {} coordinators, all state lost {} times, {} sums in rounds",
      world.memberships(), ToSeconds(world.loop().Now().time_since_epoch()), world.hosts().size(),
      world.state_losses(), world.rounds().sums());
}

}  // namespace pliant::sim
