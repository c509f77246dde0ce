// Stories of a start from a checkpoint that several learners wrote. Rank 0 reads all of it, and the
// others catch up.

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
                           .max_learners = kLearners,
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

  // Four learners train until there are `checkpoints`, then all are killed. Their successors are
  // not up yet.
  World& Begin(std::uint64_t seed, std::size_t checkpoints = 1) {
    world_.emplace(seed, kRestoredJob, RestoredReference(), Speeds{.shard = 30ms});
    World& world = *world_;
    first_ = {};
    opened_at_.clear();
    catching_up_.clear();
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
        if (opened_at_.empty()) begins_with_ = opened->applied_ticks - 1;  // reported after a tick
        opened_at_.emplace(from.name, world_->loop().Now());
      }
      const auto* progress = std::get_if<Progress>(&message);
      if (progress != nullptr && progress->following) catching_up_.insert(from.name);
    };
    world.on_read = [this](const LearnerId& by, std::string_view name, std::size_t bytes) {
      if (!name.ends_with(".safetensors")) return Status();
      read_by_[std::string(name)].insert(by.name);
      bytes_read_[std::string(name)] += bytes;
      return Status();
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
  // All members train again, from the state of `tick`.
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
  std::optional<World> world_;
  StoredCheckpoint newest_;
  std::map<std::string, std::vector<std::byte>> stored_;
  std::function<void()> on_first_;
  Membership first_;  // membership of the learners that start
  Tick begins_with_ = 0;
  std::map<std::string, TimePoint> opened_at_;
  std::set<std::string> catching_up_;
  std::map<std::string, std::set<std::string>> read_by_;  // by file
  std::map<std::string, std::size_t> bytes_read_;
};

TEST_F(Restoring, RankZeroReadsEveryByteOnceAndTheOthersCatchUp) {
  Begin(1);
  Resumes(TickOf(newest_));
  EXPECT_EQ(first_.world_size(), kLearners);
  EXPECT_EQ(catching_up_.size(), kLearners - 1U);
  for (const auto& [file, bytes] : newest_.files) {
    if (!file.ends_with(".safetensors")) continue;
    const std::string name = PathIn(newest_.name, file);
    EXPECT_EQ(bytes_read_[name], stored_.at(name).size()) << name;
    EXPECT_EQ(read_by_[name], (std::set<std::string>{first_.members[0].id.name})) << name;
  }
  EXPECT_EQ(bytes_read_.size(), 2U * kLearners) << "no other file was read";
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

// The state takes one second to arrive; before that, one member dies or a link breaks.
TEST_F(Restoring, AMemberThatDiesMeanwhileIsReplaced) {
  int incomplete = 0;
  for (std::uint64_t seed = 10; seed < 34 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World& world = Begin(seed);
    world.network().bytes_per_second = 3 << 10;
    on_first_ = [&] {
      const LearnerId victim = first_.members[seed % kLearners].id;
      world.loop().PostAfter(world.Between(0ms, 800ms), [&world, victim, this, &incomplete] {
        if (opened_at_.size() < kLearners) ++incomplete;
        world.Kill(world.pod(victim.name));
        world.network().bytes_per_second.reset();
      });
    };
    Resumes(TickOf(newest_));
    on_first_ = nullptr;
    if (seed % 8 == 0) Complete();
  }
  EXPECT_GT(incomplete, 10) << "a death before all hold the state must be common";
}

TEST_F(Restoring, ALinkThatBreaksMeanwhileUndoesNothing) {
  int meanwhile = 0;
  for (std::uint64_t seed = 40; seed < 64 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World& world = Begin(seed);
    world.network().bytes_per_second = 3 << 10;
    on_first_ = [&] {
      const LearnerId a = first_.members[seed % kLearners].id;
      const LearnerId b = first_.members[(seed + 1 + seed / 4 % 3) % kLearners].id;
      world.loop().PostAfter(world.Between(0ms, 800ms), [&, a, b] {
        if (opened_at_.size() < kLearners) ++meanwhile;
        world.CutFor(a, b, world.Between(1ms, 500ms), /*silent=*/false);
        world.network().bytes_per_second.reset();
      });
    };
    Resumes(TickOf(newest_));
    on_first_ = nullptr;
    if (seed % 8 == 0) Complete();
  }
  EXPECT_GT(meanwhile, 10) << "a break before all hold the state must be common";
}

}  // namespace
}  // namespace pliant::sim
