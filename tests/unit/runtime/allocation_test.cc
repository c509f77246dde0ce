// Memory is taken in the first steps and used again from then on.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "tests/unit/runtime/counted_new.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/shard_folder.h"
#include "trainer/runtime/compute.h"

namespace pliant {
namespace {

constexpr int kShards = 8;
constexpr std::size_t kElements = 5000;
constexpr BucketSizes kSizes = {.first = 100, .rest = 500};
constexpr int kWarmUpTicks = 3;
constexpr int kTicks = 20;

struct Sent {
  int from = 0;
  int to = 0;
  Frame frame;
};

// Learners that fold and reduce, and pass their frames on in memory.
class World {
 public:
  explicit World(int world_size) : map_(AssignShards(kShards, world_size)) {
    for (int rank = 0; rank < world_size; ++rank) {
      folders_.push_back(std::make_unique<ShardFolder>(kElements, kShards));
      reductions_.push_back(
          std::make_unique<Reduction>(kElements, [this, rank](int to, Frame frame) {
            sent_.push_back({.from = rank, .to = to, .frame = std::move(frame)});
          }));
    }
  }

  void RunTick(Tick tick) {
    for (std::size_t rank = 0; rank < folders_.size(); ++rank) {
      reductions_[rank]->Begin({.membership = {1, 1},
                                .tick = tick,
                                .map = &map_,
                                .self = static_cast<int>(rank),
                                .divisor = kShards,
                                .buckets = kSizes});
    }
    for (std::size_t rank = 0; rank < folders_.size(); ++rank) Compute(rank);
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const Sent next = std::move(sent_[i]);
      ASSERT_TRUE(reductions_[static_cast<std::size_t>(next.to)]->OnFrame(next.from, next.frame));
    }
    sent_.clear();
    for (const auto& reduction : reductions_) ASSERT_TRUE(reduction->done());
  }

 private:
  void Compute(std::size_t rank) {
    ShardFolder& folder = *folders_[rank];
    folder.Begin(kShards, map_.blocks_of_rank[rank], kSizes);
    while (!folder.done()) {
      std::ranges::fill(folder.Leaf(), 1.0F);
      if (folder.completes_block()) {
        const HeldNode node = folder.block_node();
        Reduction& reduction = *reductions_[rank];
        for (std::size_t end = kElements; end > 0; end -= 250) {
          folder.FoldReady({.begin = end - 250, .size = 250},
                           [&](std::uint32_t bucket) { reduction.AddLocal(node, bucket); });
        }
      }
      folder.Fold();
    }
  }

  const ShardMap map_;
  std::vector<std::unique_ptr<ShardFolder>> folders_;
  std::vector<std::unique_ptr<Reduction>> reductions_;
  std::vector<Sent> sent_;
};

TEST(Allocations, FoldingAndReducingTakeNone) {
  for (const int world_size : {1, 2, 3}) {
    World world(world_size);
    Tick tick = 0;
    while (tick < kWarmUpTicks) world.RunTick(tick++);
    const std::uint64_t before = Allocations();
    while (tick < kWarmUpTicks + kTicks) world.RunTick(tick++);
    EXPECT_EQ(Allocations() - before, 0U) << world_size << " learners";
  }
}

// Says its gradient in as many parts as it is told.
class SayingProgram final : public Program {
 public:
  explicit SayingProgram(std::size_t part) : part_(part) {}
  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask&, std::span<float> gradient, std::span<std::byte>,
                                 GradientSink* sink) override {
    std::ranges::fill(gradient, 1.0F);
    for (std::size_t end = gradient.size(); sink != nullptr && end > 0; end -= part_) {
      sink->OnReady({.begin = end - part_, .size = part_});
    }
    return ShardSums{.samples = 1};
  }
  Status Commit(const CommitTask&) override { return {}; }
  StateDict State() override { return {}; }
  Status LoadedState() override { return {}; }

 private:
  const ProgramInfo info_{.gradient_elements = kElements, .name = "saying"};
  const std::size_t part_;
};

// Ticks, handed over to the thread that computes and back, and their commits.
class ComputeWorld {
 public:
  ComputeWorld(std::size_t part, const BucketSizes& sizes) : program_(part), sizes_(sizes) {}

  std::uint64_t AllocationsOfTicks() {
    Next();
    loop_.Run();
    EXPECT_EQ(parts_, BucketLayout(kElements, sizes_).count() * (kWarmUpTicks + kTicks));
    return Allocations() - before_;
  }

 private:
  void Next() {
    if (ticks_ == kWarmUpTicks) before_ = Allocations();
    if (ticks_++ == kWarmUpTicks + kTicks) return loop_.Stop();
    work_.logical_shards = kShards;
    work_.blocks.assign({{.first = 0, .count = kShards}});
    work_.buckets = sizes_;
    work_.tasks.resize(kShards);
    for (int shard = 0; shard < kShards; ++shard) {
      ShardTask& task = work_.tasks[static_cast<std::size_t>(shard)];
      task.shard = shard;
      task.samples.assign({1});
    }
    compute_->RunTick(
        std::move(work_), [this](const NodePart&) { ++parts_; },
        [this](const Result<TickOutput>& output) {
          EXPECT_TRUE(output);
          compute_->Commit({.gradient = gradient_}, [this](Status) { Next(); });
        });
  }

  RealEventLoop loop_;
  SayingProgram program_;
  const BucketSizes sizes_;
  const std::vector<float> gradient_ = std::vector<float>(kElements);
  const std::unique_ptr<Compute> compute_ =
      NewThreadedCompute(loop_, program_, ShardFolder(kElements, kShards));
  TickWork work_;
  std::uint64_t before_ = 0;
  std::size_t parts_ = 0;
  int ticks_ = 0;
};

TEST(Allocations, ComputingATickTakesNone) {
  const BucketSizes one = {.first = kElements, .rest = kElements};
  EXPECT_EQ(ComputeWorld(kElements, one).AllocationsOfTicks(), 0U) << "as a whole";
  EXPECT_EQ(ComputeWorld(25, one).AllocationsOfTicks(), 0U) << "said in parts";
  EXPECT_EQ(ComputeWorld(25, kSizes).AllocationsOfTicks(), 0U) << "in buckets";
}

}  // namespace
}  // namespace pliant
