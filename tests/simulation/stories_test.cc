// Stories of the membership protocol: each puts one fault at the instant where it hurts most.

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/log.h"
#include "tests/simulation/world.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/stored_checkpoint.h"
#include "trainer/protocol/opening.h"
#include "trainer/protocol/tick_round.h"
#include "trainer/runtime/checkpoint_label.h"

namespace pliant::sim {
namespace {

using namespace std::chrono_literals;

const JobSpec kJob{.data = {.train_samples = 75,
                            .test_samples = 20,
                            .epochs = 120,
                            .global_batch_size = 16,
                            .logical_shards = 8,
                            .seed = 3},
                   .max_learners = 6,
                   .checkpoint_every_steps = 10};

const Reference& TheReference() {
  static const Reference reference = ComputeReference(*Schedule::Make(kJob.data));
  return reference;
}

class Stories : public testing::Test {
 protected:
  static void SetUpTestSuite() { log::Configure(log::Format::kText, log::Level::kWarning); }

  World& Begin(std::uint64_t seed, int learners, Speeds speeds = {.shard = 30ms},
               const JobSpec& job = kJob, const Reference& reference = TheReference()) {
    world_.emplace(seed, job, reference, speeds);
    entered_.clear();
    opened_ = {};
    opened_by_.clear();
    world_->on_message = [this](const LearnerId& from, const LearnerMessage& message) {
      if (const auto* entered = std::get_if<Entered>(&message)) {
        entered_[from.name] = entered->membership;
      }
      if (const auto* opened = std::get_if<Opened>(&message)) {
        opened_by_[opened->membership].insert(from);
        const Membership& membership = world_->members_of().at(opened->membership);
        const auto opened_it = [&](const Member& member) {
          return opened_by_[opened->membership].contains(member.id);
        };
        if (std::ranges::all_of(membership.members, opened_it)) opened_ = opened->membership;
      }
      if (then_) then_(from, message);
    };
    world_->Want(learners);
    EXPECT_TRUE(world_->RunUntil([&] { return Size() == learners; }, 10s));
    EXPECT_TRUE(world_->RunUntil([&] { return world_->furthest() > 5; }, 10s));
    return *world_;
  }
  // Size of the newest membership that all its members opened.
  int Size() const {
    return opened_.counter == 0 ? 0 : world_->members_of().at(opened_).world_size();
  }
  void Complete(bool one_at_a_time = true) {
    EXPECT_TRUE(world_->RunUntil([&] { return world_->completed(); }, 5min)) << world_->Describe();
    EXPECT_TRUE(world_->RunUntil([&] { return world_->running().empty(); }, 1min))
        << world_->Describe();
    world_->CheckTheEnd(one_at_a_time);
  }
  void KillSoon(const LearnerId& id) {
    world_->loop().Post([this, id] { world_->Kill(world_->pod(id.name)); });
  }
  // Makes the receiver ignore the frame: no membership has this id.
  static void Lose(Frame& frame) { frame.header.membership = {}; }
  static bool Announces(const Frame& frame) {
    return frame.header.kind == FrameKind::kTrailer &&
           DecodeTrailer(frame.payload.view).value().announced.has_value();
  }
  // All running learners have switched to the membership without members: a checkpoint is written.
  bool AllDrain() {
    return std::ranges::all_of(world_->running(), [this](const Pod* pod) {
      return entered_[pod->id.name].members.empty();
    });
  }

  std::optional<World> world_;
  std::map<std::string, Membership> entered_;
  std::map<MembershipId, std::set<LearnerId>> opened_by_;
  MembershipId opened_;
  std::function<void(const LearnerId& from, const LearnerMessage& message)> then_;
};

TEST_F(Stories, NothingHappens) {
  Begin(1, 3);
  Complete();
  EXPECT_EQ(world_->state_losses(), 0);
}

// All reports and checkpoints are compared with a training without learners and buckets
// (World::CheckNoise), and the states of the members with each other.
TEST_F(Stories, TheNoiseScaleIsTheSameForAnyNumberOfLearnersAndAnyBuckets) {
  ASSERT_TRUE(TheReference().noise_after.rbegin()->second.scale());
  JobSpec job = kJob;
  job.max_learners = 8;
  std::size_t buckets = 40;
  for (const int learners : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(learners);
    job.buckets = {.first = buckets, .rest = buckets};
    buckets /= 2;
    std::optional<double> reported;
    then_ = [&](const LearnerId&, const LearnerMessage& message) {
      const auto* progress = std::get_if<Progress>(&message);
      if (progress != nullptr && progress->stats) reported = progress->stats->noise_scale;
    };
    World& world = Begin(60, learners, {.shard = 30ms}, job);
    ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > 300; }, 5min));
    if (learners > 1) KillSoon(world.members_of().at(opened_).members.back().id);
    Complete();
    EXPECT_TRUE(reported);
  }
}

// A learner dies in each state of a communicator, again and again. The states are those of
// RoundsNetwork.
TEST_F(Stories, ACrashWhileGradientsTravelInRoundsChangesNothing) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::uint64_t kSeedsOfState = 4;
#else
  constexpr std::uint64_t kSeedsOfState = 34;
#endif
  JobSpec job = kJob;
  job.all_on_devices = true;
  for (const std::string_view state : {"creating", "in use", "aborting"}) {
    std::uint64_t all_kills = 0;
    std::uint64_t sums = 0;
    for (std::uint64_t seed = 90; seed < 90 + kSeedsOfState && !HasFailure(); ++seed) {
      SCOPED_TRACE(Format("{}, seed {}", state, seed));
      World& world = Begin(seed, 3, {.shard = 5ms}, job);
      int times = 0;
      std::uint64_t kills = 0;
      world.rounds().on_state = [&](const std::string& device, const char* reached) {
        if (reached != state || ++times % 3 != static_cast<int>(seed % 3) || kills == 4) return;
        for (Pod* const pod : world.running()) {
          if (ToString(pod->id) != device) continue;
          ++kills;
          KillSoon(pod->id);
        }
      };
      for (const int learners : {4, 2, 5, 3}) {
        world.Want(learners);
        const Tick next = world.furthest() + 40;
        ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > next; }, 1min));
      }
      Complete();
      all_kills += kills;
      sums += world.rounds().sums();
    }
    // A communicator may fail, and then this job is soon over.
    EXPECT_GT(all_kills, kSeedsOfState * 2);
    EXPECT_GT(sums, kSeedsOfState * 30);
  }
}

// The noise scale of this job is several hundred samples.
const JobSpec kGrowingJob{.data = {.train_samples = 600,
                                   .test_samples = 20,
                                   .epochs = 30,
                                   .global_batch_size = 16,
                                   .logical_shards = 8,
                                   .seed = 3,
                                   .max_doublings = 3},
                          .max_learners = 8,
                          .checkpoint_every_steps = 10};

const Reference& GrowingReference() {
  static const Reference reference = ComputeReference(*Schedule::Make(kGrowingJob.data));
  return reference;
}

TEST(GrowingReference, Grows) {
  const BatchSegments& segments = GrowingReference().schedule->segments();
  ASSERT_FALSE(segments.empty());
  EXPECT_GT(segments.front().epoch, 1U);
  EXPECT_EQ(std::ranges::max(segments, {}, &BatchSegment::doublings).doublings, 3);
}

// States, noise windows, checkpoints and the ledger of samples are those of the reference.
TEST_F(Stories, ABatchThatGrowsIsTheSameForAnyNumberOfLearners) {
  for (const int learners : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(learners);
    Begin(70, learners, {.shard = 5ms}, kGrowingJob, GrowingReference());
    Complete();
  }
}

TEST_F(Stories, ABatchGrowsWhileLearnersComeAndGo) {
  World& world = Begin(71, 2, {.shard = 5ms}, kGrowingJob, GrowingReference());
  const Schedule& schedule = *GrowingReference().schedule;
  const int sizes[] = {5, 3, 8, 1, 4};
  for (std::uint64_t epoch = 2; epoch < 12; ++epoch) {
    ASSERT_TRUE(
        world.RunUntil([&] { return world.furthest() + 4 > schedule.TicksBefore(epoch); }, 5min));
    world.Want(sizes[epoch % std::size(sizes)]);
  }
  Complete();
}

// The one that decides dies with its decision: some members have it, others do not.
TEST_F(Stories, ACrashOnTheDecidingTickChangesNothing) {
  for (std::uint64_t seed = 72; seed < 82 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World& world = Begin(seed, 3, {.shard = 5ms}, kGrowingJob, GrowingReference());
    int kills = 0;
    std::set<Tick> killed_at;
    world.on_sent = [&](const LearnerId& by, const LearnerId&, Frame& frame) {
      if (frame.header.kind != FrameKind::kTrailer) return;
      if (!DecodeTrailer(frame.payload.view).value().doublings) return;
      if (frame.header.tick < 150 || kills == 4 || !killed_at.insert(frame.header.tick).second)
        return;
      ++kills;
      // Half of the seeds lose the frame to the first receiver, too.
      if (seed % 2 == 0) Lose(frame);
      KillSoon(by);
    };
    Complete();
    EXPECT_EQ(kills, 4);
  }
}

// All learners are lost, and others continue from a checkpoint in the middle of a larger batch.
TEST_F(Stories, ABatchThatHasGrownIsRestored) {
  World& world = Begin(83, 3, {.shard = 5ms}, kGrowingJob, GrowingReference());
  const Schedule& schedule = *GrowingReference().schedule;
  const std::uint64_t grown = schedule.segments().back().epoch;
  ASSERT_TRUE(
      world.RunUntil([&] { return world.furthest() > schedule.TicksBefore(grown) + 2; }, 5min));
  ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() > 0; }, 1min));
  for (Pod* const pod : world.running()) world.Kill(*pod);
  Complete();
  EXPECT_EQ(world.state_losses(), 1);
}

// A learner that enters a membership because of a frame has not handled that frame when the next
// one is read.
TEST_F(Stories, FramesOfAPeerStayInOrderWhenTimersAreLate) {
  for (std::uint64_t seed = 200; seed < 220 && !HasFailure(); ++seed) {
    Begin(seed, 2, {.timers_late = 1, .max_timers_late = 200ms});
  }
}

TEST_F(Stories, GrowingAndShrinkingLosesNothing) {
  World& world = Begin(2, 1);
  for (const int size : {4, 2, 6, 3, 5}) {
    world.Want(size);
    ASSERT_TRUE(world.RunUntil([&] { return Size() == size; }, 20s)) << world.Describe();
  }
  EXPECT_FALSE(world.completed()) << "the job is too short for the story";
  Complete();
}

// Other learners join, leave and die; the learners that stay keep the connections between them.
TEST_F(Stories, LearnersThatStayKeepTheirConnections) {
  World& world = Begin(40, 3);
  const Membership stay = world.members_of().at(opened_);
  std::map<LearnerId, int> met;  // per newcomer: the learners that stay
  world.on_connected = [&](const LearnerId& by, const LearnerId& peer) {
    if (!stay.RankOf(peer)) return;
    EXPECT_FALSE(stay.RankOf(by)) << ToString(by) << " connects to " << ToString(peer) << " again";
    ++met[peer];
  };
  for (const int size : {5, 4, 6, 4}) {
    world.Want(size);
    ASSERT_TRUE(world.RunUntil([&] { return Size() == size; }, 20s)) << world.Describe();
  }
  const Membership before = world.members_of().at(opened_);
  const auto newcomer = std::ranges::find_if(
      before.members, [&](const Member& member) { return !stay.RankOf(member.id); });
  ASSERT_NE(newcomer, before.members.end());
  const LearnerId killed = newcomer->id;
  KillSoon(killed);
  ASSERT_TRUE(world.RunUntil(
      [&] { return Size() == 4 && !world.members_of().at(opened_).RankOf(killed); }, 30s));
  EXPECT_EQ(met.size(), 3U) << "each of them connected to the newcomers";
  EXPECT_FALSE(world.completed()) << "the job is too short for the story";
  Complete();
}

std::uint64_t BytesIn(World& world) {
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : world.store.objects()) bytes += content.size();
  return bytes;
}

// Number of files of the newest complete checkpoint.
std::size_t FilesOfNewest(World& world) {
  const auto steps = ListSteps(world.store);
  if (!steps) return 0;
  const auto newest = std::ranges::find_if(*steps, &StoredCheckpoint::has_manifest);
  return newest == steps->end() ? 0 : newest->files.size();
}

TEST_F(Stories, ALargeStateIsSavedBySeveralAndRestored) {
  JobSpec job = kJob;
  job.checkpoint_slice_bytes = 1;
  World& world = Begin(30, 3, {.shard = 30ms}, job);
  ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() > 0; }, 30s));
  EXPECT_EQ(FilesOfNewest(world), 3U * 3 + 1) << "each wrote its slice and a list of its files";
  for (Pod* pod : world.running()) KillSoon(pod->id);
  ASSERT_TRUE(world.RunUntil([&] { return world.state_losses() == 1; }, 30s));
  Complete();
}

// A learner that leaves at the boundary of a checkpoint writes its slice before it exits.
TEST_F(Stories, AllThatLeaveAtOnceSaveWithEachOther) {
  JobSpec job = kJob;
  job.checkpoint_slice_bytes = 1;
  job.checkpoint_every_steps = 1'000;
  World& world = Begin(31, 3, {.max_disk = 500ms}, job);
  const std::uint64_t before = world.furthest();
  world.Want(0);
  ASSERT_TRUE(world.RunUntil([&] { return world.running().empty(); }, 30s)) << world.Describe();
  EXPECT_EQ(FilesOfNewest(world), 3U * 3 + 1);
  world.Want(2);
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 2 && world.furthest() > before + 5; }, 30s));
  EXPECT_EQ(world.state_losses(), 0);
  Complete();
}

// No member waits for the slice of a dead learner; the next checkpoint follows soon.
TEST_F(Stories, AWriterThatDiesCostsItsCheckpointOnly) {
  JobSpec job = kJob;
  job.checkpoint_slice_bytes = 1;
  for (std::uint64_t seed = 40; seed < 47 && !HasFailure(); ++seed) {
    World& world = Begin(seed, 3, {.shard = 30ms, .max_disk = 300ms}, job);
    ASSERT_TRUE(world.RunUntil([&] { return world.store.operations() > seed % 7; }, 30s));
    KillSoon(world.running().back()->id);
    ASSERT_TRUE(world.RunUntil([&] { return Size() == 3; }, 30s)) << world.Describe();
    const std::uint64_t newest = world.newest_step();
    ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() > newest; }, 10s))
        << world.Describe();
  }
}

// No membership lasts as long as the time between two checkpoints, and rank 0 may be another
// learner each time.
TEST_F(Stories, CheckpointsByTimeComeHoweverOftenMembershipsChange) {
  JobSpec job = kJob;
  job.checkpoint_every_steps = 0;
  job.checkpoint_every = 2s;
  for (const bool rank_zero_dies : {false, true}) {
    World& world = Begin(50, 3, {.shard = 30ms}, job);
    const std::uint64_t saved = world.newest_step();
    const TimePoint began = world.loop().Now();
    for (int round = 0; world.newest_step() == saved; ++round) {
      ASSERT_TRUE(world.loop().Now() - began < 20s) << "rank 0 dies " << rank_zero_dies;
      const MembershipId before = opened_;
      const int size = rank_zero_dies ? 3 : 2 + round % 2;
      if (rank_zero_dies) KillSoon(world.members_of().at(before).members.front().id);
      world.Want(size);
      ASSERT_TRUE(world.RunUntil([&] { return opened_ > before && Size() == size; }, 10s))
          << world.Describe();
      ASSERT_FALSE(world.RunUntil([] { return false; }, 500ms));  // some ticks
    }
  }
}

// Training continues and earlier checkpoints stay. Once there is room, the next attempt succeeds,
// and it comes soon.
TEST_F(Stories, AFullVolumeStopsNothing) {
  World& world = Begin(20, 3);
  ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() > 0; }, 30s));
  world.store.capacity = BytesIn(world);
  const auto report = [&] {
    const auto stats = world.coordinator().core().progress().stats;
    return stats && stats->last_checkpoint ? *stats->last_checkpoint : CheckpointReport{};
  };
  ASSERT_TRUE(world.RunUntil([&] { return report().reason == "VolumeFull"; }, 1min));
  EXPECT_TRUE(report().error.ends_with("No space left on device")) << report().error;
  const Tick then = world.furthest();
  const std::uint64_t step = world.newest_step();
  ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > then + 50; }, 1min));
  EXPECT_EQ(world.newest_step(), step) << "older checkpoints stay";
  EXPECT_LE(BytesIn(world), world.store.capacity) << "failed attempts leave no file";
  world.store.capacity.reset();
  ASSERT_TRUE(world.RunUntil([&] { return report().reason.empty(); }, 30s));
  EXPECT_GT(world.newest_step(), step);
  EXPECT_EQ(world.memberships(), 1);
  Complete();
}

// Rank 0's own slice fits.
TEST_F(Stories, AFullVolumeOfAnotherWriterIsReported) {
  JobSpec job = kJob;
  job.checkpoint_slice_bytes = 1;
  World& world = Begin(22, 3, {.shard = 30ms}, job);
  ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() > 0; }, 30s));
  world.store.fault = [&](std::uint64_t, std::string_view name) {
    world.store.capacity.reset();
    if (name.contains("-00003-of-00003")) world.store.capacity = 0;
    return MemoryStore::Fault::kNone;
  };
  const auto report = [&] {
    const auto stats = world.coordinator().core().progress().stats;
    return stats && stats->last_checkpoint ? *stats->last_checkpoint : CheckpointReport{};
  };
  ASSERT_TRUE(world.RunUntil([&] { return !report().reason.empty(); }, 1min));
  EXPECT_EQ(report().reason, "VolumeFull") << report().error;
  EXPECT_TRUE(report().error.ends_with("No space left on device")) << report().error;
  world.store.fault = nullptr;
  world.store.capacity.reset();
  ASSERT_TRUE(world.RunUntil([&] { return report().reason.empty(); }, 30s));
  EXPECT_EQ(world.memberships(), 1);
  Complete();
}

TEST_F(Stories, WithoutRoomForTheFinalModelTheJobWaitsForIt) {
  World& world = Begin(21, 2);
  world.store.capacity = 0;
  const Tick total = Schedule::Make(kJob.data)->total_ticks();
  ASSERT_TRUE(world.RunUntil([&] { return world.furthest() == total; }, 5min));
  ASSERT_FALSE(world.RunUntil([&] { return world.completed(); }, 3min));
  EXPECT_FALSE(world.faulty());
  const auto stats = world.coordinator().core().progress().stats;
  ASSERT_TRUE(stats && stats->last_checkpoint);
  EXPECT_EQ(stats->last_checkpoint->reason, "VolumeFull");
  world.store.capacity.reset();
  Complete();
}

TEST_F(Stories, AJoinerDiesBetweenPreparedAndTheSwitch) {
  World& world = Begin(3, 2);
  bool died = false;
  then_ = [&](const LearnerId& from, const LearnerMessage& message) {
    if (died || from.name != "l-002" || !std::holds_alternative<Prepared>(message)) return;
    died = true;
    KillSoon(from);
  };
  world.Want(3);
  ASSERT_TRUE(world.RunUntil([&] { return died; }, 10s));
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 3; }, 30s)) << "its successor joins";
  Complete();
}

// The leaver and one other member complete the tick, the third does not. Then the other dies, and
// only the leaver, which is about to exit, has the state.
TEST_F(Stories, ALeaverIsCalledBackWhenTheOnlyOtherHolderDies) {
  int told = 0;
  for (std::uint64_t seed = 100; seed < 140 && told < 3; ++seed) {
    then_ = nullptr;
    World& world = Begin(seed, 3);
    const MembershipId before = opened_;
    std::set<std::string> switched;
    bool struck = false;
    then_ = [&](const LearnerId& from, const LearnerMessage& message) {
      const auto* const entered = std::get_if<Entered>(&message);
      if (entered == nullptr || struck || entered->membership.id == before) return;
      switched.insert(from.name);
      // l-001 leaves. l-000 has switched, l-002 has not: from now on frames to l-002 are lost.
      if (switched != std::set<std::string>{"l-000", "l-001"}) return;
      struck = true;
      world.CutFor(world.pod("l-000").id, world.pod("l-002").id, 1min, false);
      world.CutFor(world.pod("l-001").id, world.pod("l-002").id, 3ms, false);
      KillSoon(world.pod("l-000").id);
    };
    world.Terminate(world.pod("l-001"), 20s);
    ASSERT_TRUE(world.RunUntil([&] { return switched.contains("l-001"); }, 10s));
    if (!world.RunUntil([&] { return struck; }, 200ms)) {
      Complete();
      continue;
    }
    const Tick held = world.furthest();
    std::optional<Membership> recovered;
    then_ = [&](const LearnerId& from, const LearnerMessage& message) {
      const auto* const entered = std::get_if<Entered>(&message);
      if (entered != nullptr && from.name == "l-001" && !recovered) recovered = entered->membership;
    };
    ASSERT_TRUE(world.RunUntil([&] { return recovered.has_value(); }, 30s)) << world.Describe();
    EXPECT_TRUE(recovered->RankOf(world.pod("l-002").id));
    if (world.pod("l-002").applied < held) ++told;
    Complete();
    EXPECT_EQ(world.state_losses(), 0);
    if (HasFailure()) return;
  }
  EXPECT_GE(told, 3) << "the fault never struck";
}

// l-002 leaves. The link between the others breaks in the tick at whose end it switches: when the
// coordinator learns of the switch, they have already reported that they wait for a recovery.
TEST_F(Stories, LearnersThatStoppedBeforeASwitchReceiveIt) {
  World& world = Begin(77, 3, {.shard = 30ms, .slowness = 3});  // l-001 is the last in each tick
  const MembershipId before = opened_;
  const LearnerId first = world.pod("l-000").id;
  const LearnerId second = world.pod("l-001").id;
  std::optional<Tick> last;  // tick of the membership before
  world.on_sent = [&](const LearnerId& by, const LearnerId& to, Frame& frame) {
    if (frame.header.kind != FrameKind::kTrailer || frame.header.membership != before) return;
    if (by.name == "l-002") return;
    if (by == first && Announces(frame)) last = frame.header.tick;
    if (frame.header.tick != last) return;
    if (to.name != "l-002") return Lose(frame);
    if (by == first) return;
    // With this frame l-002 has all that it needs. It handles it only after the others have
    // reported the loss.
    world.loop().Post([&] { world.Stall(world.pod("l-002"), 60ms); });
    world.loop().PostAfter(15ms, [&] { world.CutFor(first, second, 3ms, false); });
  };
  bool switched = false;
  std::set<std::string> stopped;  // before the switch
  then_ = [&](const LearnerId& from, const LearnerMessage& message) {
    if (std::holds_alternative<Lost>(message) && !switched) stopped.insert(from.name);
    switched = switched || (std::holds_alternative<Entered>(message) && from.name == "l-002");
  };
  world.OperatorPause(true);
  world.Terminate(world.pod("l-002"), 20s);
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 2; }, 20s)) << world.Describe();
  EXPECT_EQ(stopped, (std::set<std::string>{"l-000", "l-001"})) << "the fault never struck";
  EXPECT_EQ(world.memberships(), 2) << "there is no recovery";
  world.OperatorPause(false);
  Complete();
  EXPECT_EQ(world.state_losses(), 0);
}

// All leave, and wait for rank 0 to write. Rank 0 dies, alone or with the coordinator that knew
// whose checkpoint it was.
TEST_F(Stories, TheLastCheckpointIsWrittenByThoseWhoAreLeft) {
  for (const bool coordinator_dies : {false, true}) {
    SCOPED_TRACE(coordinator_dies);
    World& world = Begin(72, 3);
    world.volume_hangs = [](const LearnerId& of) { return of.name == "l-000" ? 1min : 0s; };
    world.Want(0);
    ASSERT_TRUE(world.RunUntil([&] { return AllDrain(); }, 10s));
    const Tick reached = world.furthest();
    world.Kill(world.pod("l-000"));
    if (coordinator_dies) {
      world.coordinator().Kill();
      world.loop().RunFor(500ms);
      world.StartCoordinator();
    }
    ASSERT_TRUE(world.RunUntil([&] { return world.running().empty(); }, 20s)) << world.Describe();
    EXPECT_GE(world.furthest(), reached);
    EXPECT_EQ(world.newest_step(), Schedule::Make(kJob.data)->StepsBefore(world.furthest()));
    world.Want(2);
    Complete();
  }
}

// Otherwise the next learners would start from an older checkpoint.
TEST_F(Stories, ANewCoordinatorWaitsForTheLastCheckpoint) {
  World& world = Begin(73, 3);
  world.volume_hangs = [](const LearnerId& of) { return of.name == "l-000" ? 5s : 0s; };
  world.Want(0);
  ASSERT_TRUE(world.RunUntil([&] { return AllDrain(); }, 10s));
  const Tick reached = world.furthest();
  world.coordinator().Kill();
  world.loop().RunFor(500ms);
  world.StartCoordinator();
  ASSERT_LT(world.newest_step(), Schedule::Make(kJob.data)->StepsBefore(reached));
  world.Want(2);
  std::optional<Tick> begins_with;
  then_ = [&](const LearnerId&, const LearnerMessage& message) {
    const auto* const opened = std::get_if<Opened>(&message);  // reported after a tick
    if (opened != nullptr && !begins_with) begins_with = opened->applied_ticks - 1;
  };
  ASSERT_TRUE(world.RunUntil([&] { return begins_with.has_value(); }, 30s)) << world.Describe();
  EXPECT_EQ(begins_with, reached);
  then_ = nullptr;
  Complete();
}

TEST_F(Stories, TheCoordinatorDiesAfterTellingHalfOfTheLearners) {
  for (const bool keeps_counter : {true, false}) {
    then_ = nullptr;
    World& world = Begin(5, 4);
    int told = 0;
    world.on_effect = [&](CoordinatorHost&, const CoordinatorEffect& effect) {
      const auto* const send = std::get_if<SendMessage>(&effect);
      if (send == nullptr || !std::holds_alternative<Recover>(send->message)) return true;
      return ++told <= 1;
    };
    world.Kill(world.pod("l-001"));
    ASSERT_TRUE(world.RunUntil([&] { return !world.coordinator().alive(); }, 10s));
    world.on_effect = [](CoordinatorHost&, const CoordinatorEffect&) { return true; };
    world.loop().RunFor(2s);
    if (keeps_counter) {
      world.RestartCoordinator();
    } else {
      world.StartCoordinator();
    }
    ASSERT_TRUE(world.RunUntil([&] { return Size() == 4 && opened_ > MembershipId(1, 2); }, 60s))
        << world.Describe();
    Complete();
    EXPECT_EQ(world.state_losses(), 0);
  }
}

TEST_F(Stories, AnOldCoordinatorStaysAliveNextToTheNewOne) {
  World& world = Begin(6, 4);
  // Two of the learners connect to the new coordinator. The other two stay with the old one, which
  // nobody has notified.
  world.StartCoordinator();
  const auto old = world.hosts()[0];
  const auto connections = old->connections();
  ASSERT_EQ(connections.size(), 4U);
  old->Drop(connections[0]->id);
  old->Drop(connections[1]->id);
  world.loop().RunFor(3s);
  world.Kill(world.pod("l-003"));
  EXPECT_TRUE(world.RunUntil([&] { return opened_.term == 2; }, 2min)) << world.Describe();
  old->Kill();
  Complete(/*one_at_a_time=*/false);
}

TEST_F(Stories, EveryoneLeavesAtOnce) {
  World& world = Begin(7, 4);
  world.Want(0);
  ASSERT_TRUE(world.RunUntil([&] { return world.running().empty(); }, 20s)) << world.Describe();
  EXPECT_EQ(world.coordinator().core().progress().state, JobState::kDrained);
  const Tick reached = world.furthest();
  const Schedule schedule = *Schedule::Make(kJob.data);
  const auto restored = RestoreNewest(world.store, JobOf(kJob.data, {}));
  ASSERT_TRUE(restored) << restored.error();
  EXPECT_EQ(restored->manifest.position.step, schedule.StepsBefore(reached)) << "no step is lost";
  world.Want(3);
  Complete();
}

TEST_F(Stories, EveryoneLeavesAtOnceWithoutACoordinator) {
  for (const int learners : {1, 3}) {
    World& world = Begin(8, learners);
    world.OperatorPause(true);
    world.coordinator().Kill();
    world.loop().RunFor(1s);
    for (Pod* const pod : world.running()) world.Terminate(*pod, 10s);
    ASSERT_TRUE(world.RunUntil([&] { return world.running().empty(); }, 2s)) << world.Describe();
    const auto restored = RestoreNewest(world.store, JobOf(kJob.data, {}));
    ASSERT_TRUE(restored) << restored.error();
    EXPECT_EQ(restored->manifest.position.step,
              Schedule::Make(kJob.data)->StepsBefore(world.furthest()));
    world.StartCoordinator();
    world.OperatorPause(false);
    Complete();
  }
}

TEST_F(Stories, RankZeroDiesWhileTheFinalModelIsWritten) {
  for (const auto fault : {MemoryStore::Fault::kFail, MemoryStore::Fault::kFailDone}) {
    for (int deadly = 0; deadly < 3; ++deadly) {
      World& world = Begin(9, 3);
      int puts = 0;
      world.store.fault = [&](std::uint64_t, std::string_view name) {
        if (!name.starts_with("final/") || puts++ != deadly) return MemoryStore::Fault::kNone;
        KillSoon(world.pod("l-000").id);
        return fault;
      };
      Complete();
    }
  }
}

TEST_F(Stories, TrainingContinuesWithoutACoordinator) {
  World& world = Begin(10, 3);
  world.coordinator().Kill();
  const Tick then = world.furthest();
  world.loop().RunFor(2s);
  EXPECT_GT(world.furthest(), then + 10);
  world.StartCoordinator();
  world.Want(4);
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 4; }, 60s)) << world.Describe();
  Complete();
}

// For one optimizer step: the learners that computed each shard.
using Computed = std::map<int, std::vector<std::string>>;

// At whatever instant a learner is lost, the others compute each shard that only the lost one had,
// or that nobody had begun, exactly once.
TEST_F(Stories, OnlyTheShardsOfALostLearnerAreComputedAgain) {
  int kept = 0;
  for (int instant = 1; instant <= 8 && !HasFailure(); ++instant) {
    SCOPED_TRACE(instant);
    World& world = Begin(30, 3);
    const std::uint64_t struck_step = Schedule::Make(kJob.data)->StepsBefore(world.furthest()) + 3;
    Computed computed;
    int shards = 0;
    world.on_shard = [&](const LearnerId& by, const ShardTask& task) {
      if (task.kind != TickKind::kTrain || task.step != struck_step) return;
      computed[task.shard].push_back(by.name);
      if (++shards == instant) KillSoon(world.pod("l-001").id);
    };
    world.OperatorPause(true);
    ASSERT_TRUE(world.RunUntil([&] { return Size() == 2; }, 10s)) << world.Describe();
    ASSERT_EQ(computed.size(), 8U);
    // The others may already have received all that they needed from it before it died.
    std::size_t lost = 0;
    std::size_t again = 0;
    for (auto& [shard, by] : computed) {
      const bool was_lost = std::erase(by, "l-001") > 0;
      lost += was_lost ? 1 : 0;
      again += was_lost ? by.size() : 0;
      EXPECT_EQ(was_lost ? std::max(by.size(), std::size_t{1}) : by.size(), 1U)
          << "shard " << shard << ", computed by the other learners";
    }
    EXPECT_TRUE(again == 0 || again == lost) << again << " of " << lost;
    for (Pod* const pod : world.running()) {
      kept += static_cast<int>(pod->learner->stats().shards_kept);
    }
    world.OperatorPause(false);
    Complete();
  }
  EXPECT_GT(kept, 10) << "finished shards were kept";
}

constexpr double kSlow = 64 << 10;

// A state whose transfer takes as long as dozens of ticks.
JobSpec WithALargeState(std::size_t ballast_bytes, std::size_t backlog_bytes) {
  JobSpec job = kJob;
  job.ballast_bytes = ballast_bytes;
  job.state_batch_bytes = 1 << 10;
  job.backlog_bytes = backlog_bytes;
  return job;
}

// The state of joiners is transferred over slow links while the others continue to train.
TEST_F(Stories, NobodyWaitsForTheStateOfAJoiner) {
  World& world = Begin(32, 2, {.shard = 30ms}, WithALargeState(128 << 10, 1 << 20));
  world.network().bytes_per_second = kSlow;
  std::map<std::string, TimePoint> entered;
  std::map<std::string, TimePoint> in_sync;
  then_ = [&](const LearnerId& from, const LearnerMessage& message) {
    if (std::holds_alternative<Entered>(message)) entered[from.name] = world.loop().Now();
    if (std::holds_alternative<Opened>(message)) in_sync[from.name] = world.loop().Now();
  };
  world.on_shard = [&](const LearnerId& by, const ShardTask&) {
    if (by.name < "l-002") return;
    EXPECT_TRUE(in_sync.contains(by.name)) << by.name << " computes before it is in sync";
  };
  Tick furthest = world.furthest();
  TimePoint advanced = world.loop().Now();
  Duration longest{};
  world.Want(4);
  ASSERT_TRUE(world.RunUntil(
      [&] {
        if (const Tick now = world.furthest(); now != furthest) {
          longest = std::max(longest, world.loop().Now() - advanced);
          advanced = world.loop().Now();
          furthest = now;
        }
        return Size() == 4;
      },
      60s))
      << world.Describe();
  for (const std::string name : {"l-002", "l-003"}) {
    EXPECT_GT(in_sync[name] - entered[name], 1s) << "the transfer was too fast for the story";
  }
  EXPECT_LT(longest, 300ms) << "the longest gap between two ticks";
  world.network().bytes_per_second.reset();
  Complete();
}

TEST_F(Stories, ALearnerThatCatchesUpFromFarBehindHoldsTheOthersBack) {
  World& world = Begin(36, 2, {.shard = 10ms}, WithALargeState(256 << 10, 0));
  world.network().bytes_per_second = kSlow;
  world.Want(3);
  ASSERT_TRUE(world.RunUntil([&] { return entered_["l-002"].world_size() == 3; }, 20s));
  const Tick entered = world.furthest();
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 3; }, 60s)) << world.Describe();
  EXPECT_LT(world.furthest() - entered, 16) << "four ticks wait at the joiner, four are in transit";
  Complete();
}

// Two learners train; the state of a third is transferred over slow links for many seconds. A
// leaver exits as if there were no third learner, even if that one has held the others back.
TEST_F(Stories, ALeaveDoesNotWaitForWhoCatchesUp) {
  struct Case {
    std::string leaver;
    std::size_t backlog_bytes;  // 0: the others are soon held back
  };
  for (const auto& [leaver, backlog_bytes] :
       {Case{"l-000", 0}, Case{"l-001", 0}, Case{"l-002", 0}, Case{"l-000", 1 << 20}}) {
    SCOPED_TRACE(leaver + " leaves, backlog " + std::to_string(backlog_bytes));
    World& world = Begin(34, 2, {.shard = 10ms}, WithALargeState(512 << 10, backlog_bytes));
    world.network().bytes_per_second = kSlow;
    world.Want(3);
    ASSERT_TRUE(world.RunUntil([&] { return entered_["l-002"].world_size() == 3; }, 20s));
    const MembershipId catches_up = entered_["l-002"].id;
    world.loop().RunFor(2s);
    ASSERT_EQ(Size(), 2) << "its state is still in transit";
    world.OperatorPause(true);
    const TimePoint asked = world.loop().Now();
    world.Terminate(world.pod(leaver), 20s);
    ASSERT_TRUE(world.RunUntil([&] { return !world.pod(leaver).running; }, 20s));
    EXPECT_LT(world.loop().Now() - asked, 1s);
    const Tick then = world.furthest();
    ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > then + 3; }, 1s))
        << world.Describe();
    world.network().bytes_per_second.reset();
    ASSERT_TRUE(world.RunUntil([&] { return Size() == 2 && opened_ > catches_up; }, 20s))
        << world.Describe();
    EXPECT_EQ(world.state_losses(), 0);
    world.OperatorPause(false);
    Complete();
    if (HasFailure()) return;
  }
}

// The last holder waits until the other has caught up with it.
TEST_F(Stories, TheLastThatHoldsTheStateLeavesWhenAnotherDoes) {
  World& world = Begin(35, 1, {.shard = 10ms}, WithALargeState(128 << 10, 0));
  world.network().bytes_per_second = kSlow;
  world.Want(2);
  ASSERT_TRUE(world.RunUntil([&] { return entered_["l-001"].world_size() == 2; }, 20s));
  world.loop().RunFor(500ms);
  world.OperatorPause(true);
  world.Terminate(world.pod("l-000"), 20s);
  const TimePoint asked = world.loop().Now();
  ASSERT_TRUE(world.RunUntil([&] { return !world.pod("l-000").running; }, 20s));
  EXPECT_GT(world.loop().Now() - asked, 1s) << "the transfer was too fast for the story";
  EXPECT_EQ(world.pod("l-000").exit->message, "left as asked");
  world.network().bytes_per_second.reset();
  world.OperatorPause(false);
  Complete();
  EXPECT_EQ(world.state_losses(), 0);
}

// l-001 leaves. l-002 has missed the tick at whose end the others switched, and catches up with
// l-000. Before the state has arrived, l-000 dies, and with it the coordinator that knew l-001 as a
// member.
TEST_F(Stories, ANewCoordinatorCallsALeaverBack) {
  for (const bool keeps_counter : {true, false}) {
    then_ = nullptr;
    World& world = Begin(71, 3, {.shard = 30ms}, WithALargeState(128 << 10, 1 << 20));
    const MembershipId before = opened_;
    world.on_sent = [](const LearnerId& by, const LearnerId& to, Frame& frame) {
      if (by.name == "l-000" && to.name == "l-002" && Announces(frame)) Lose(frame);
    };
    bool catches_up = false;
    std::optional<Membership> recovered;
    then_ = [&](const LearnerId& from, const LearnerMessage& message) {
      if (const auto* const progress = std::get_if<Progress>(&message)) {
        catches_up = catches_up || (from.name == "l-002" && progress->following);
      } else if (const auto* const entered = std::get_if<Entered>(&message)) {
        if (catches_up && from.name == "l-001") recovered = entered->membership;
      }
    };
    world.network().bytes_per_second = kSlow;
    world.Terminate(world.pod("l-001"), 20s);
    ASSERT_TRUE(world.RunUntil(
        [&] { return entered_["l-000"].id > before && entered_["l-001"].id > before; }, 10s));
    const Tick held = world.furthest();
    ASSERT_EQ(world.pod("l-002").applied, held - 1);
    world.CutFor(world.pod("l-000").id, world.pod("l-002").id, 3ms, false);
    ASSERT_TRUE(world.RunUntil([&] { return catches_up; }, 10s)) << world.Describe();
    world.loop().RunFor(300ms);
    ASSERT_TRUE(world.pod("l-001").running) << "it is needed until the state has arrived";
    world.Kill(world.pod("l-000"));
    world.coordinator().Kill();
    world.network().bytes_per_second.reset();
    world.loop().RunFor(500ms);
    world.Stall(world.pod("l-002"), 300ms);  // the leaver's message arrives first
    if (keeps_counter) {
      world.RestartCoordinator();
    } else {
      world.StartCoordinator();
    }
    ASSERT_TRUE(world.RunUntil([&] { return recovered.has_value(); }, 30s)) << world.Describe();
    EXPECT_TRUE(recovered->RankOf(world.pod("l-002").id));
    Complete();
    EXPECT_EQ(world.state_losses(), 0);
  }
}

TEST_F(Stories, AJoinerIsLostWhileItsStateComes) {
  for (const std::string_view lost : {"l-000", "l-001", "l-002"}) {
    then_ = nullptr;
    World& world = Begin(33, 2, {.shard = 30ms}, WithALargeState(128 << 10, 1 << 20));
    world.network().bytes_per_second = kSlow;
    world.Want(3);
    ASSERT_TRUE(world.RunUntil([&] { return entered_["l-002"].world_size() == 3; }, 20s));
    world.loop().RunFor(500ms);
    EXPECT_EQ(Size(), 2) << "its state is still in transit";
    const Tick then = world.furthest();
    world.Kill(world.pod(lost));
    ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > then + 3; }, 2s))
        << world.Describe();
    world.network().bytes_per_second.reset();
    ASSERT_TRUE(world.RunUntil([&] { return Size() == 3; }, 60s)) << world.Describe();
    EXPECT_EQ(world.state_losses(), 0);
    Complete();
  }
}

TEST_F(Stories, AnotherIsLostWhileTheShardsOfTheFirstAreComputed) {
  World& world = Begin(31, 4);
  const std::uint64_t struck_step = Schedule::Make(kJob.data)->StepsBefore(world.furthest()) + 3;
  Computed computed;
  bool first_died = false;
  bool second_died = false;
  world.on_shard = [&](const LearnerId& by, const ShardTask& task) {
    if (task.kind != TickKind::kTrain || task.step != struck_step) return;
    computed[task.shard].push_back(by.name);
    if (!first_died && by.name == "l-001") {
      first_died = true;
      KillSoon(by);
    } else if (first_died && !second_died && entered_["l-002"].world_size() == 3) {
      second_died = true;
      KillSoon(world.pod("l-002").id);
    }
  };
  world.OperatorPause(true);
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 2; }, 20s)) << world.Describe();
  EXPECT_TRUE(second_died) << "the fault never struck";
  for (auto& [shard, by] : computed) {
    std::erase_if(by, [](const std::string& name) { return name == "l-001" || name == "l-002"; });
    EXPECT_EQ(by.size(), 1U) << "shard " << shard << ", computed by the other learners";
  }
  world.OperatorPause(false);
  Complete();
}

// l-000 is one tick ahead of the others. They catch up with it, and it dies before its state has
// arrived: the others have already computed their part of that tick.
TEST_F(Stories, AFailedCatchUpComputesNothingAgain) {
  World& world = Begin(74, 3, {.shard = 30ms}, WithALargeState(128 << 10, 1 << 20));
  const MembershipId before = opened_;
  const Tick struck = world.furthest() + 2;
  const std::uint64_t struck_step = Schedule::Make(kJob.data)->StepsBefore(struck);
  Computed computed;
  world.on_shard = [&](const LearnerId& by, const ShardTask& task) {
    if (task.kind != TickKind::kTrain || task.step != struck_step) return;
    computed[task.shard].push_back(by.name);
  };
  world.on_sent = [&](const LearnerId& by, const LearnerId&, Frame& frame) {
    if (by.name != "l-000" || frame.header.kind != FrameKind::kTrailer) return;
    if (frame.header.tick == struck) Lose(frame);
  };
  ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > struck; }, 10s));
  world.network().bytes_per_second = kSlow;
  for (const std::string other : {"l-001", "l-002"}) {
    ASSERT_EQ(world.pod(other).applied, struck);
    world.CutFor(world.pod("l-000").id, world.pod(other).id, 3ms, false);
  }
  std::set<std::string> catching_up;
  then_ = [&](const LearnerId& from, const LearnerMessage& message) {
    const auto* const progress = std::get_if<Progress>(&message);
    if (progress != nullptr && progress->following) catching_up.insert(from.name);
  };
  ASSERT_TRUE(world.RunUntil([&] { return catching_up.size() == 2; }, 10s)) << world.Describe();
  EXPECT_EQ(catching_up, (std::set<std::string>{"l-001", "l-002"}));
  world.OperatorPause(true);
  world.Kill(world.pod("l-000"));
  world.network().bytes_per_second.reset();
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before && Size() == 2; }, 20s))
      << world.Describe();
  ASSERT_EQ(computed.size(), 8U);
  for (auto& [shard, by] : computed) {
    std::erase(by, "l-000");
    EXPECT_EQ(by.size(), 1U) << "shard " << shard << ", computed by the other learners";
  }
  world.OperatorPause(false);
  Complete();
  EXPECT_EQ(world.state_losses(), 0);
}

// l-001 dies when the others have all that they need for the tick. l-000 has committed it and
// requests a recovery. l-002 is about to commit: it requests the recovery too, or the recovery
// arrives first.
TEST_F(Stories, ATickThatIsBeingCommittedIsCommittedDespiteALoss) {
  for (const Duration takes : {Duration(100ms), Duration(1s)}) {
    then_ = nullptr;
    World& world = Begin(80, 3, {.shard = 30ms, .slowness = 3});  // l-001 is the last in each tick
    const MembershipId before = opened_;
    const Tick struck = world.furthest() + 2;
    world.on_sent = [&](const LearnerId& by, const LearnerId& to, const Frame& frame) {
      if (by.name != "l-001" || to.name != "l-002" || frame.header.tick != struck) return;
      if (frame.header.kind != FrameKind::kTrailer) return;
      world.commits_take = [&](const LearnerId& of) {
        return of.name == "l-002" ? takes : Duration();
      };
      world.loop().PostAfter(50ms, [&] { world.Kill(world.pod("l-001")); });
    };
    std::set<std::string> stopped;
    std::map<std::string, Tick> enters_with;
    then_ = [&](const LearnerId& from, const LearnerMessage& message) {
      if (std::holds_alternative<Lost>(message)) stopped.insert(from.name);
      const auto* const entered = std::get_if<Entered>(&message);
      if (entered != nullptr) enters_with[from.name] = entered->applied_ticks;
    };
    world.OperatorPause(true);
    ASSERT_TRUE(world.RunUntil([&] { return opened_ > before; }, 1min)) << world.Describe();
    EXPECT_EQ(stopped.contains("l-002"), takes < 200ms);
    EXPECT_EQ(enters_with,
              (std::map<std::string, Tick>{{"l-000", struck + 1}, {"l-002", struck + 1}}));
    EXPECT_EQ(Size(), 2);
    EXPECT_EQ(world.memberships(), 2);
    then_ = nullptr;
    world.commits_take = [](const LearnerId&) { return Duration(); };
    world.OperatorPause(false);
    Complete();
  }
}

TEST_F(Stories, AllAreKilledAndTheNextResumeFromTheCheckpoint) {
  World& world = Begin(11, 3);
  ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > 35; }, 30s));
  for (Pod* const pod : world.running()) world.Kill(*pod);
  Complete();
  EXPECT_EQ(world.state_losses(), 1);
}

TEST_F(Stories, ALearnerThatHangsIsReplaced) {
  World& world = Begin(12, 3);
  const MembershipId before = opened_;
  world.Stall(world.pod("l-001"), 1min);
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before && Size() == 2; }, 40s))
      << world.Describe();
  Complete();
}

// l-001 is dropped and keeps its state. The other continues, writes a checkpoint that is ahead of
// that state, and dies. If one failed read made the start skip the checkpoint, its steps would be
// lost.
TEST_F(Stories, AReadThatFailsOnceDoesNotUndoWhatACheckpointHolds) {
  World& world = Begin(17, 2);
  const MembershipId before = opened_;
  Pod& kept = world.pod("l-001");
  const Tick held = kept.learner->applied_ticks();
  world.OperatorPause(true);
  world.Stall(kept, 1h);
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before && Size() == 1; }, 1min));
  ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() > held + 10; }, 1min));
  world.Kill(world.pod("l-000"));
  const StoredCheckpoint newest = *NewestCheckpoint(world.store);
  const Tick saved = ReadManifest(world.store, newest)->position.tick;
  int failed = 0;
  world.on_read = [&](const LearnerId&, std::string_view, std::size_t) -> Status {
    if (++failed > 1) return {};
    return Fail(ErrorCode::kUnavailable, "stale file handle");
  };
  std::optional<Tick> begins_with;
  then_ = [&](const LearnerId&, const LearnerMessage& message) {
    const auto* const opened = std::get_if<Opened>(&message);
    if (opened != nullptr && !begins_with) begins_with = opened->applied_ticks - 1;
  };
  world.MendAll();
  ASSERT_TRUE(world.RunUntil([&] { return begins_with.has_value(); }, 1min)) << world.Describe();
  EXPECT_GT(failed, 1);
  EXPECT_EQ(begins_with, saved);
  then_ = nullptr;
  world.OperatorPause(false);
  Complete();
}

// The learner is alive and reports so; no other process can detect that it makes no progress.
TEST_F(Stories, ALearnerWhoseProgramHangsTimesOut) {
  JobSpec job = kJob;
  job.step_timeout = 20s;
  World& world = Begin(16, 3, {.shard = 30ms}, job);
  const MembershipId before = opened_;
  std::optional<Left> left;
  then_ = [&](const LearnerId& from, const LearnerMessage& message) {
    if (const auto* said = std::get_if<Left>(&message); said != nullptr && from.name == "l-001") {
      left = *said;
    }
  };
  world.program_hangs = [](const LearnerId& of) { return of.name == "l-001"; };
  world.OperatorPause(true);
  const TimePoint began = world.loop().Now();
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before && Size() == 2; }, 1min))
      << world.Describe();
  EXPECT_GT(world.loop().Now() - began, 20s) << "no other process removes it";
  EXPECT_LT(world.loop().Now() - began, 24s);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->reason, LeftReason::kFailed);
  EXPECT_TRUE(left->message.starts_with("StepTimeout: its program has worked at shard "))
      << left->message;
  then_ = nullptr;
  world.OperatorPause(false);
  Complete();
  EXPECT_EQ(world.pod("l-001").exit->code, ErrorCode::kTimeout) << "the learner may be retried";
  EXPECT_EQ(world.state_losses(), 0);
}

// The others wait for it: late data are no reason to treat a learner as lost.
TEST_F(Stories, ASlowLearnerIsNamedAndStays) {
  World& world = Begin(14, 3, {.shard = 10ms, .slowness = 8});
  const Tick then = world.furthest();
  ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > then + 20; }, 1min));
  const std::optional<Straggler> slowest = world.coordinator().core().progress().slowest;
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->id.name, "l-001");
  EXPECT_GT(slowest->slowdown, 2);
  EXPECT_EQ(world.memberships(), 1);
  Complete();
}

// The coordinator reaches all of them.
TEST_F(Stories, OneOfTwoDisconnectedHalvesContinues) {
  World& world = Begin(15, 4);
  const Tick then = world.furthest();
  for (const std::string a : {"l-000", "l-001"}) {
    for (const std::string b : {"l-002", "l-003"}) {
      world.CutFor(world.pod(a).id, world.pod(b).id, 10min, false);
    }
  }
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 2 && world.furthest() > then + 5; }, 60s))
      << world.Describe();
  world.MendAll();
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 4; }, 3min)) << world.Describe();
  EXPECT_EQ(world.state_losses(), 0);
  Complete();
}

// A member with wrong arithmetic, or one that lies, announces an impossible state: no member
// follows it.
TEST_F(Stories, AMemberThatOpensWithAnImpossibleStateIsAccused) {
  for (const Reproducibility mode : {Reproducibility::kBitwise, Reproducibility::kStatistical}) {
    JobSpec job = kJob;
    job.reproducibility = mode;
    World& world = Begin(60, 3, {.shard = 30ms}, job);
    const LearnerId liar = world.running().back()->id;
    int lies = 0;
    world.on_sent = [&](const LearnerId& by, const LearnerId&, Frame& frame) {
      if (by != liar || frame.header.kind != FrameKind::kOpen || lies == 2) return;
      ++lies;
      StateSummary lie{.position = {.has_state = true, .applied_ticks = Tick{1} << 60},
                       .current = true};
      if (mode == Reproducibility::kStatistical) {
        // Node 12 is of the tree over the job's shards, not of the tree over its learners.
        lie = DecodeStateSummary(frame.payload.view, *Schedule::Make(job.data), true).value();
        lie.finished = {12};
      }
      frame.payload = EncodeStateSummary(lie);
    };
    std::set<LearnerId> accused;
    then_ = [&](const LearnerId&, const LearnerMessage& message) {
      if (const auto* lost = std::get_if<Lost>(&message)) {
        accused.insert(lost->accused.begin(), lost->accused.end());
      }
    };
    world.Want(4);
    EXPECT_TRUE(world.RunUntil([&] { return Size() == 4; }, 30s)) << world.Describe();
    EXPECT_EQ(lies, 2);
    EXPECT_EQ(accused, (std::set<LearnerId>{liar}));
    EXPECT_EQ(world.state_losses(), 0);
    then_ = nullptr;
    Complete();
  }
}

// Rank 0 sends wrong frames to all others. The first that notices aborts the tick for all.
TEST_F(Stories, AMemberThatKeepsSendingWrongFramesIsEvicted) {
  for (std::uint64_t seed = 300; seed < 310; ++seed) {
    World& world = Begin(seed, 3, {.shard = 60ms});
    const LearnerId wrong = world.members_of().at(opened_).members.front().id;
    const Membership before = world.members_of().at(opened_);
    bool is_wrong = true;
    std::set<MembershipId> misled;
    world.on_sent = [&](const LearnerId& by, const LearnerId&, Frame& frame) {
      if (!is_wrong || by != wrong || frame.header.kind != FrameKind::kTrailer) return;
      frame.payload = {};
      misled.insert(frame.header.membership);
    };
    ASSERT_TRUE(world.RunUntil([&] { return entered_["l-002"].id > before.id; }, 20s));
    EXPECT_EQ(entered_["l-002"].members, before.members) << "the members try once more";
    ASSERT_TRUE(world.RunUntil(
        [&] { return !world.members_of().at(opened_).RankOf(wrong).has_value(); }, 30s))
        << world.Describe();
    EXPECT_LE(misled.size(), 4U) << "twice per link";
    is_wrong = false;
    ASSERT_TRUE(world.RunUntil([&] { return Size() == 3; }, 60s)) << "it may join again";
    EXPECT_EQ(world.state_losses(), 0);
    Complete();
  }
}

// The transport itself detects that the bytes are no frame. It is unknown which end is wrong, so
// the later rank is evicted, as for any link.
TEST_F(Stories, OneOfTwoMembersWithWrongFramesBetweenThemIsEvicted) {
  World& world = Begin(62, 2, {.shard = 60ms});
  const std::vector<Member> members = world.members_of().at(opened_).members;
  const LearnerId first = members.front().id;
  const LearnerId second = members.back().id;
  const MembershipId before = opened_;
  world.network().Garble(first, second);
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before; }, 20s)) << world.Describe();
  EXPECT_EQ(Size(), 2) << "the members try once more";
  world.network().Garble(first, second);
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 1; }, 20s)) << world.Describe();
  EXPECT_FALSE(world.members_of().at(opened_).RankOf(second));
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 2; }, 30s)) << "it may join again";
  EXPECT_EQ(world.state_losses(), 0);
  Complete();
}

// It reconnects each time, so no peer misses it for long.
TEST_F(Stories, AMemberThatSendsNoFramesDoesNotKeepAMembershipFromOpening) {
  World& world = Begin(63, 2, {.shard = 60ms});
  const LearnerId wrong = world.running().back()->id;
  const MembershipId before = opened_;
  int connected = 0;
  world.on_connected = [&](const LearnerId& by, const LearnerId& peer) {
    if (peer != wrong) return;
    ++connected;
    world.loop().Post([&world, wrong, by] { world.network().Garble(wrong, by); });
  };
  world.network().Garble(wrong, world.running().front()->id);
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before && Size() == 1; }, 30s))
      << world.Describe();
  EXPECT_EQ(connected, 4) << "the first try and three retries";
  EXPECT_FALSE(world.members_of().at(opened_).RankOf(wrong));
  world.on_connected = [](const LearnerId&, const LearnerId&) {};
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 2; }, 60s)) << "it may join again";
  EXPECT_EQ(world.state_losses(), 0);
  Complete();
}

// It sends frames for a membership that no other member knows, which must be buffered until that
// one opens.
TEST_F(Stories, AMemberThatSendsTooFarAheadIsAccused) {
  World& world = Begin(61, 3);
  const MembershipId before = opened_;
  const LearnerId liar = world.running().back()->id;
  const auto much = std::make_shared<const std::vector<std::byte>>(std::size_t{80} << 20);
  int lies = 0;
  world.on_sent = [&](const LearnerId& by, const LearnerId&, Frame& frame) {
    if (by != liar || frame.header.kind != FrameKind::kTrailer || lies == 2) return;
    ++lies;
    frame.header.membership.counter += 1'000'000;
    frame.payload = {.owner = much, .view = *much};
  };
  std::set<LearnerId> accused;
  then_ = [&](const LearnerId&, const LearnerMessage& message) {
    if (const auto* lost = std::get_if<Lost>(&message)) {
      accused.insert(lost->accused.begin(), lost->accused.end());
    }
  };
  EXPECT_TRUE(world.RunUntil([&] { return opened_ > before && Size() == 3; }, 2min))
      << world.Describe();
  EXPECT_EQ(lies, 2);
  EXPECT_EQ(accused, (std::set<LearnerId>{liar}));
  EXPECT_EQ(world.state_losses(), 0);
  then_ = nullptr;
  Complete();
}

TEST_F(Stories, ALinkThatBreaksOnceCostsNobody) {
  World& world = Begin(75, 4);
  const Membership before = world.members_of().at(opened_);
  std::set<std::string> tell;
  then_ = [&](const LearnerId& from, const LearnerMessage& message) {
    const auto* const lost = std::get_if<Lost>(&message);
    if (lost != nullptr && !lost->accused.empty()) tell.insert(from.name);
  };
  // Each end detects the break itself, before another member reports it.
  for (const std::string other : {"l-000", "l-003"}) world.Stall(world.pod(other), 100ms);
  world.CutFor(world.pod("l-001").id, world.pod("l-002").id, 3ms, false);
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before.id; }, 20s)) << world.Describe();
  EXPECT_EQ(tell, (std::set<std::string>{"l-001", "l-002"})) << "both ends report the same break";
  EXPECT_EQ(world.members_of().at(opened_).members, before.members);
  then_ = nullptr;
  Complete();
}

// While a membership opens, the link between l-000 and l-001 breaks: l-000 knows that l-001 is
// ready, but not the other way round. Then l-002 announces to l-000 that it is ready, too.
TEST_F(Stories, NobodyBeginsBeforeTheOthersCanHearThatItIsReady) {
  World& world = Begin(76, 4);
  const MembershipId before = opened_;
  const LearnerId first = world.pod("l-000").id;
  const LearnerId second = world.pod("l-001").id;
  bool broken = false;
  bool all_are_ready = false;
  world.on_sent = [&](const LearnerId& by, const LearnerId& to, Frame& frame) {
    if (frame.header.membership <= before || to != second) return;
    if (by.name == "l-002" && frame.header.kind == FrameKind::kOpen) {
      world.loop().Post([&] { world.Stall(world.pod("l-002"), 300ms); });
    }
    if (by == first && frame.header.kind == FrameKind::kOpened && !broken) Lose(frame);
  };
  world.on_received = [&](const LearnerId& by, const LearnerId& from, const Frame& frame) {
    if (by != first || frame.header.kind != FrameKind::kOpened) return;
    if (frame.header.membership <= before) return;
    if (from == second && !std::exchange(broken, true)) {
      world.loop().Post([&] { world.CutFor(first, second, 500ms, false); });
    }
    if (from.name == "l-002") all_are_ready = !world.pod("l-000").transport->Connected(second);
  };
  world.Want(3);
  ASSERT_TRUE(world.RunUntil([&] { return all_are_ready; }, 10s)) << "the fault never struck";
  const MembershipId opens = entered_["l-000"].id;
  ASSERT_TRUE(world.RunUntil([&] { return opened_ > before; }, 5s)) << world.Describe();
  EXPECT_EQ(opened_, opens) << "no member aborts the opening";
  Complete();
}

TEST_F(Stories, ALinkThatStaysBrokenCostsOneLearnerNotTheJob) {
  World& world = Begin(13, 4);
  const Tick then = world.furthest();
  world.CutFor(world.pod("l-001").id, world.pod("l-002").id, 10min, false);
  ASSERT_TRUE(world.RunUntil([&] { return Size() == 3 && world.furthest() > then + 5; }, 60s))
      << world.Describe();
  EXPECT_TRUE(world.pod("l-002").running) << "it may join again";
  Complete();
}

// Its other rank finds the final model and exits. The job completed while there was no coordinator,
// so the new coordinator never sees both ranks: the operator deletes the waiting one.
TEST_F(Stories, ARankThatWaitsGoesWhenTheJobIsComplete) {
  JobSpec job = kJob;
  job.ranks = 2;
  World& world = world_.emplace(90, job, TheReference());
  const Tick total = Schedule::Make(kJob.data)->total_ticks();
  world.Want(1);
  ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > total - 40; }, 5min));
  world.volume_hangs = [](const LearnerId& of) {
    return of.name == "l-001" && of.local_rank == 1 ? 20s : 0s;
  };
  bool hello = false;
  world.on_message = [&](const LearnerId& from, const LearnerMessage& message) {
    hello = hello || (from.name == "l-001" && std::holds_alternative<Hello>(message));
  };
  world.Want(2);
  ASSERT_TRUE(world.RunUntil([&] { return hello; }, 10s));
  world.coordinator().Kill();
  ASSERT_TRUE(world.RunUntil([&] { return world.completed(); }, 1min));
  world.StartCoordinator();
  EXPECT_TRUE(world.RunUntil([&] { return world.running().empty(); }, 1min)) << world.Describe();
}

}  // namespace
}  // namespace pliant::sim
