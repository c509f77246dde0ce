// Stories of a start from a checkpoint that several learners wrote: each reads a part of it.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/simulation/world.h"
#include "trainer/checkpoint/checkpoint.h"

namespace pliant::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kLearners = 4;

const JobSpec kRestoredJob{.data = {.train_samples = 75,
                                    .test_samples = 20,
                                    .epochs = 24,
                                    .global_batch_size = 16,
                                    .logical_shards = 8,
                                    .seed = 3},
                           .learners_most = kLearners,
                           .checkpoint_every_steps = 10,
                           .checkpoint_slice_bytes = 1,
                           .ballast_bytes = 8 << 10};

const Reference& RestoredReference() {
  static const Reference reference = ComputeReference(*Schedule::Make(kRestoredJob.data));
  return reference;
}

class Restoring : public testing::Test {
 protected:
  static void SetUpTestSuite() { log::Configure(log::Format::kText, log::Level::kError); }

  // Four train until there are `checkpoints`, then all are killed. Who comes next is not up yet.
  World& Begin(std::uint64_t seed, std::size_t checkpoints = 1) {
    JobSpec job = kRestoredJob;
    job.state_batch_bytes = batch_bytes_;
    world_.emplace(seed, job, RestoredReference(), Speeds{.shard = 30ms});
    World& world = *world_;
    first_ = {};
    opened_at_.clear();
    followers_.clear();
    read_by_.clear();
    bytes_read_.clear();
    world.Want(kLearners);
    EXPECT_TRUE(world.RunUntil([&] { return Checkpoints().size() == checkpoints; }, 60s));
    for (Pod* const pod : world.running()) world.Kill(*pod);
    newest_ = Checkpoints().front();
    EXPECT_EQ(newest_.slices(), kLearners);
    stored_ = world.store.objects();
    world.on_message = [this](const LearnerId& from, const LearnerMessage& message) {
      if (const auto* entered = std::get_if<Entered>(&message);
          entered != nullptr && first_.members.empty()) {
        first_ = entered->membership;
        if (on_first_) on_first_();
      }
      if (const auto* opened = std::get_if<Opened>(&message)) {
        if (opened_at_.empty()) begins_with_ = opened->applied_ticks - 1;  // told after a tick
        opened_at_.emplace(from.name, world_->loop().Now());
      }
      const auto* progress = std::get_if<Progress>(&message);
      if (progress != nullptr && progress->following) followers_.insert(from.name);
    };
    world.on_read = [this](const LearnerId& by, std::string_view name, std::size_t bytes) {
      if (!name.ends_with(".safetensors")) return Status();
      read_by_[std::string(name)].insert(by.name);
      bytes_read_[std::string(name)] += bytes;
      return can_read_ ? can_read_(by) : Status();
    };
    return world;
  }
  std::vector<StoredCheckpoint> Checkpoints() {
    auto steps = ListSteps(world_->store).value_or(std::vector<StoredCheckpoint>{});
    std::erase_if(steps, [](const StoredCheckpoint& stored) { return !stored.has_manifest(); });
    return steps;
  }
  Tick TickOf(const StoredCheckpoint& stored) {
    return ReadManifest(world_->store, stored)->position.tick;
  }
  // All train again, on the state of `tick`.
  void Resumes(Tick tick) {
    ASSERT_TRUE(world_->RunUntil([&] { return opened_at_.size() >= kLearners; }, 60s))
        << world_->Describe();
    EXPECT_EQ(begins_with_, tick);
  }
  void Complete() {
    EXPECT_TRUE(world_->RunUntil([&] { return world_->completed(); }, 5min)) << world_->Describe();
    EXPECT_TRUE(world_->RunUntil([&] { return world_->running().empty(); }, 1min))
        << world_->Describe();
    world_->CheckTheEnd(/*one_at_a_time=*/false);
  }
  bool IsRank0(const LearnerId& id) const { return first_.RankOf(id) == 0; }
  // Of those who came after the others were killed.
  bool OneReadAll() const {
    std::map<std::string, std::size_t> files_of;
    for (const auto& [file, readers] : read_by_) {
      if (!file.starts_with(newest_.name)) continue;
      for (const std::string& reader : readers) ++files_of[reader];
    }
    return std::ranges::any_of(files_of, [](const auto& of) { return of.second == 2 * kLearners; });
  }

  std::size_t batch_bytes_ = kRestoredJob.state_batch_bytes;
  std::optional<World> world_;
  StoredCheckpoint newest_;
  std::map<std::string, std::vector<std::byte>> stored_;
  std::function<void()> on_first_;
  std::function<Status(const LearnerId& by)> can_read_;
  Membership first_;  // of those who start
  Tick begins_with_ = 0;
  std::map<std::string, TimePoint> opened_at_;
  std::set<std::string> followers_;
  std::map<std::string, std::set<std::string>> read_by_;  // by file
  std::map<std::string, std::size_t> bytes_read_;
};

TEST_F(Restoring, EveryByteIsReadOnceAndAllAreInStepAtOnce) {
  Begin(1);
  Resumes(TickOf(newest_));
  EXPECT_EQ(first_.world_size(), kLearners);
  EXPECT_TRUE(followers_.empty());
  std::map<std::string, std::size_t> bytes_of;
  for (const auto& [file, bytes] : newest_.files) {
    if (!file.ends_with(".safetensors")) continue;
    const std::string name = PathIn(newest_.name, file);
    EXPECT_EQ(bytes_read_[name], stored_.at(name).size()) << name;
    ASSERT_EQ(read_by_[name].size(), 1U) << name;
    bytes_of[*read_by_[name].begin()] += bytes;
  }
  EXPECT_EQ(bytes_read_.size(), 2U * kLearners) << "nothing of others";
  EXPECT_EQ(bytes_of.size(), 1U * kLearners);
  Complete();
}

// Who cannot read its part follows those who read all.
TEST_F(Restoring, AMemberThatCannotReadItsPartIsNoHindrance) {
  can_read_ = [&](const LearnerId& by) -> Status {
    if (IsRank0(by)) return {};
    return Fail(ErrorCode::kUnavailable, "stale file handle");
  };
  Begin(2);
  Resumes(TickOf(newest_));
  EXPECT_EQ(followers_.size(), kLearners - 1U);
  Complete();
}

TEST_F(Restoring, ADamagedFileLeadsToTheCheckpointBefore) {
  Begin(3, 2);
  for (const auto& [file, bytes] : newest_.files) {
    if (!file.starts_with("optimizer-00003")) continue;
    world_->store.objects().at(PathIn(newest_.name, file)).back() ^= std::byte{1};
  }
  Resumes(TickOf(Checkpoints().back()));
  Complete();
}

TEST_F(Restoring, AMissingFileLeadsToTheCheckpointBefore) {
  Begin(4, 2);
  ASSERT_EQ(world_->store.objects().erase(PathIn(newest_.name, "model-00002-of-00004.safetensors")),
            1U);
  Resumes(TickOf(Checkpoints().back()));
  Complete();
}

TEST_F(Restoring, AVolumeThatHangsForOneMemberHoldsTheOthersUpForSeconds) {
  bool hung = false;
  Begin(5);
  world_->volume_hangs = [&](const LearnerId& of) -> Duration {
    if (hung || first_.RankOf(of) != 2) return 0s;
    hung = true;
    return 60s;
  };
  const TimePoint began = world_->loop().Now();
  ASSERT_TRUE(world_->RunUntil([&] { return opened_at_.size() >= kLearners - 1; }, 50s));
  ASSERT_TRUE(hung);
  EXPECT_LT(world_->loop().Now() - began, 20s);
  Resumes(TickOf(newest_));
  Complete();
}

// The state takes a second to come; one dies, or a link breaks, at some time before that.
TEST_F(Restoring, AMemberThatDiesMeanwhileIsReplaced) {
  int incomplete = 0;
  for (std::uint64_t seed = 10; seed < 34 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World& world = Begin(seed);
    world.network().bytes_per_second = 3 << 10;
    on_first_ = [&] {
      const LearnerId victim = first_.members[seed % kLearners].id;
      world.loop().PostAfter(world.Between(0ms, 800ms), [&world, victim, this, &incomplete] {
        if (opened_at_.empty()) ++incomplete;
        world.Kill(world.pod(victim.name));
        world.network().bytes_per_second.reset();
      });
    };
    Resumes(TickOf(newest_));
    on_first_ = nullptr;
    if (seed % 8 == 0) Complete();
  }
  EXPECT_GT(incomplete, 10) << "the story is about what happens before they begin";
}

TEST_F(Restoring, ALinkThatBreaksMeanwhileCostsTheParts) {
  int meanwhile = 0;
  int by_one = 0;
  for (std::uint64_t seed = 40; seed < 64 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World& world = Begin(seed);
    world.network().bytes_per_second = 3 << 10;
    on_first_ = [&] {
      const LearnerId a = first_.members[seed % kLearners].id;
      const LearnerId b = first_.members[(seed + 1 + seed / 4 % 3) % kLearners].id;
      world.loop().PostAfter(world.Between(0ms, 800ms), [&, a, b] {
        if (opened_at_.empty()) ++meanwhile;
        world.CutFor(a, b, world.Between(1ms, 500ms), /*silent=*/false);
        world.network().bytes_per_second.reset();
      });
    };
    Resumes(TickOf(newest_));
    on_first_ = nullptr;
    if (OneReadAll()) ++by_one;
    if (seed % 8 == 0) Complete();
  }
  EXPECT_GT(meanwhile, 10) << "the story is about what happens before they begin";
  EXPECT_GT(by_one, 10);
}

// Rank 0 is connected to all of them. They give the membership up before it has read anything, and
// all enter another one without that link.
TEST_F(Restoring, ALinkBetweenOthersThatIsDownForSecondsCostsTheParts) {
  int without = 0;
  int by_one = 0;
  for (std::uint64_t seed = 70; seed < 102 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    // Of one batch or of many: nobody has taken it, or the sender waits for that.
    batch_bytes_ = seed % 2 == 0 ? kRestoredJob.state_batch_bytes : kRestoredJob.ballast_bytes;
    World& world = Begin(seed);
    bool down = false;
    on_first_ = [&] {
      const LearnerId a = first_.members[1 + seed % 3].id;
      const LearnerId b = first_.members[1 + (seed + 1) % 3].id;
      world.volume_hangs = [&](const LearnerId&) { return world.Between(300ms, 1500ms); };
      world.loop().PostAfter(world.Between(0ms, 100ms), [&, a, b] {
        const Duration duration = world.Between(1200ms, 8s);
        world.CutFor(a, b, duration, /*silent=*/seed % 4 == 0);
        down = true;
        world.loop().PostAfter(duration, [&] { down = false; });
      });
    };
    bool read_without = false;
    can_read_ = [&](const LearnerId&) -> Status {
      read_without = read_without || down;
      return {};
    };
    Resumes(TickOf(newest_));
    on_first_ = nullptr;
    can_read_ = nullptr;
    if (read_without) ++without;
    if (OneReadAll()) ++by_one;
    if (seed % 8 == 0) Complete();
  }
  EXPECT_GT(without, 10) << "the story is about a link that is not up when they read";
  EXPECT_GT(by_one, 10);
}

// What is not taken is in memory, and in the way of what else is to be said.
TEST_F(Restoring, TwoBatchesAreUnderWayAtMost) {
  World& world = Begin(110);
  world.network().bytes_per_second = 3 << 10;
  std::map<std::pair<std::string, std::string>, std::size_t> under_way;  // by sender and receiver
  std::size_t most = 0;
  std::size_t sent = 0;
  world.on_sent = [&](const LearnerId& by, const LearnerId& to, const Frame& frame) {
    if (frame.header.kind != FrameKind::kPart) return;
    std::size_t& bytes = under_way[{by.name, to.name}];
    bytes += frame.payload.view.size();
    sent += frame.payload.view.size();
    most = std::max(most, bytes);
  };
  world.on_received = [&](const LearnerId& by, const LearnerId& from, const Frame& frame) {
    if (frame.header.kind != FrameKind::kPart) return;
    under_way[{from.name, by.name}] -= frame.payload.view.size();
  };
  Resumes(TickOf(newest_));
  EXPECT_TRUE(followers_.empty());
  EXPECT_EQ(most, 2 * kRestoredJob.state_batch_bytes);
  EXPECT_GT(sent, (kLearners - 1) * kRestoredJob.ballast_bytes) << "all of it came that way";
  world.network().bytes_per_second.reset();
  Complete();
}

}  // namespace
}  // namespace pliant::sim
