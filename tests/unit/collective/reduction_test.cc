#include "trainer/collective/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/rounds/deal_shards.h"

namespace pliant {
namespace {

constexpr MembershipId kMembership{.term = 2, .counter = 5};

struct Sent {
  int from;
  int to;
  Frame frame;
};

// The same in every run but one of new seeds.
std::uint32_t Seed() {
  const char* const text = std::getenv("PLIANT_TEST_SEED");
  return text == nullptr ? 1 : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

class CountedMemory final : public MemorySource {
 public:
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    bytes_ += bytes;
    return HeapMemory().Allocate(bytes);
  }
  std::size_t floats() const { return bytes_ / sizeof(float); }

 private:
  std::size_t bytes_ = 0;
};

// W learners whose frames stay in a common heap until the test delivers them.
class World {
 public:
  World(int shards, int world_size, std::size_t elements, std::size_t bucket_elements)
      : World(shards, world_size, elements,
              BucketSizes{.first = bucket_elements, .rest = bucket_elements}) {}
  World(int shards, int world_size, std::size_t elements, const BucketSizes& sizes)
      : sizes_(sizes), plans_(static_cast<std::size_t>(world_size)) {
    for (int rank = 0; rank < world_size; ++rank) {
      accumulators_.push_back(std::make_unique<GradientAccumulator>(elements, shards));
      reductions_.push_back(std::make_unique<Reduction>(
          elements,
          [this, rank](int to, Frame frame) {
            floats_sent_ += frame.payload.view.size() / sizeof(float);
            if (!SameHost(rank, to)) {
              floats_between_hosts_ += frame.payload.view.size() / sizeof(float);
            }
            sent_.push_back({rank, to, std::move(frame)});
          },
          memory_));
    }
  }

  void Begin(const ShardMap& map, Tick tick, float divisor) {
    map_ = map;
    for (int rank = 0; rank < map.world_size(); ++rank)
      at(rank).Begin({.membership = kMembership,
                      .tick = tick,
                      .plan = plans_[static_cast<std::size_t>(rank)].For(
                          map_, tells_hosts_ ? host_of_rank_ : std::vector<int>{}, rank),
                      .divisor = divisor,
                      .buckets = sizes_});
  }
  // `told`: whether the reductions know the hosts.
  void SetHosts(std::vector<int> host_of_rank, bool told = true) {
    host_of_rank_ = std::move(host_of_rank);
    tells_hosts_ = told;
  }

  // Computes all shards of a rank and gives their nodes to its reduction.
  void Compute(int rank, const std::vector<std::vector<float>>& leaves) {
    GradientAccumulator& accumulator = *accumulators_[static_cast<std::size_t>(rank)];
    accumulator.Begin(map_.logical_shards, map_.blocks_of_rank[static_cast<std::size_t>(rank)],
                      sizes_);
    while (!accumulator.done()) {
      std::ranges::copy(leaves[static_cast<std::size_t>(accumulator.next_shard())],
                        accumulator.Leaf().begin());
      if (accumulator.Accumulate() != 0) at(rank).AddLocal(accumulator.finished().back());
    }
  }

  // The same as in a backward pass that finishes elements in its own order.
  void ComputeInParts(int rank, const std::vector<std::vector<float>>& leaves,
                      std::mt19937& random) {
    GradientAccumulator& accumulator = *accumulators_[static_cast<std::size_t>(rank)];
    accumulator.Begin(map_.logical_shards, map_.blocks_of_rank[static_cast<std::size_t>(rank)],
                      sizes_);
    while (!accumulator.done()) {
      const std::vector<float>& leaf = leaves[static_cast<std::size_t>(accumulator.next_shard())];
      std::ranges::fill(accumulator.Leaf(), std::nanf(""));
      if (accumulator.completes_block()) {
        const HeldNode node = accumulator.block_node();
        const auto add = [&](std::uint32_t bucket) {
          at(rank).AddLocal(node, bucket);
          if (random() % 2 == 0) DeliverOne(random);
        };
        std::vector<ElementRange> parts = Cut(leaf.size(), random);
        for (const ElementRange& part : parts) {
          std::ranges::copy(std::span(leaf).subspan(part.begin, part.size),
                            accumulator.Leaf().begin() + static_cast<std::ptrdiff_t>(part.begin));
          if (random() % 4 != 0) accumulator.AccumulateReady(part, add);
        }
        accumulator.AccumulateRest(add);
      } else {
        std::ranges::copy(leaf, accumulator.Leaf().begin());
      }
      accumulator.Accumulate();
    }
  }

  bool DeliverOne(std::mt19937& random) {
    if (sent_.empty()) return false;
    std::swap(sent_[random() % sent_.size()], sent_.back());
    const Sent next = std::move(sent_.back());
    sent_.pop_back();
    const Status taken = at(next.to).OnFrame(next.from, next.frame);
    EXPECT_TRUE(taken) << taken.error();
    return true;
  }

  Reduction& at(int rank) { return *reductions_[static_cast<std::size_t>(rank)]; }
  std::vector<Sent>& sent() { return sent_; }
  std::size_t floats_sent() const { return floats_sent_; }
  std::size_t floats_between_hosts() const { return floats_between_hosts_; }
  std::size_t floats_allocated() const { return memory_.floats(); }

 private:
  bool SameHost(int a, int b) const {
    return !host_of_rank_.empty() &&
           host_of_rank_[static_cast<std::size_t>(a)] == host_of_rank_[static_cast<std::size_t>(b)];
  }
  static std::vector<ElementRange> Cut(std::size_t elements, std::mt19937& random) {
    std::vector<ElementRange> parts;
    for (std::size_t begin = 0; begin < elements;) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 100, elements - begin);
      parts.push_back({.begin = begin, .size = size});
      begin += size;
    }
    std::ranges::shuffle(parts, random);
    return parts;
  }

  const BucketSizes sizes_;
  ShardMap map_;
  std::vector<LastReductionPlan> plans_;
  std::vector<std::unique_ptr<GradientAccumulator>> accumulators_;
  CountedMemory memory_;
  std::vector<std::unique_ptr<Reduction>> reductions_;
  std::vector<Sent> sent_;
  std::size_t floats_sent_ = 0;
  std::size_t floats_between_hosts_ = 0;
  std::vector<int> host_of_rank_;
  bool tells_hosts_ = false;
};

std::vector<std::vector<float>> RandomLeaves(int shards, std::size_t elements,
                                             std::mt19937& random) {
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::vector<std::vector<float>> leaves(static_cast<std::size_t>(shards),
                                         std::vector<float>(elements));
  for (auto& leaf : leaves)
    for (float& value : leaf) value = std::ldexp(mantissa(random), exponent(random));
  return leaves;
}

std::vector<float> PlainMean(const std::vector<std::vector<float>>& leaves, float divisor) {
  std::vector<float> root = SumTree<std::vector<float>>(
      leaves, [](const std::vector<float>& left, const std::vector<float>& right) {
        std::vector<float> sum(left.size());
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = left[i] + right[i];
        return sum;
      });
  for (float& value : root) value /= divisor;
  return root;
}

std::vector<float> RootOf(Reduction& reduction) {
  return {reduction.root().begin(), reduction.root().end()};
}

TEST(Reduction, GivesTheBitsOfThePlainTreeForEveryWorldSize) {
  // This size has a remainder below a cache line, a short last bucket, and empty pieces at large W.
  constexpr std::size_t kElements = 333;
  std::mt19937 random(20);
  for (const int shards : {1, 2, 4, 8, 16, 32, 64}) {
    const auto leaves = RandomLeaves(shards, kElements, random);
    const std::vector<float> want = PlainMean(leaves, 157);
    for (int world_size = 1; world_size <= shards + 1; ++world_size) {
      SCOPED_TRACE(std::to_string(shards) + " shards, world size " + std::to_string(world_size));
      World world(shards, world_size, kElements, 128);
      for (Tick tick = 0; tick < 2; ++tick) {  // so that buffers are reused
        world.Begin(AssignShards(shards, world_size), tick, 157);
        std::vector<int> ranks;
        for (int rank = 0; rank < world_size; ++rank) ranks.push_back(rank);
        std::ranges::shuffle(ranks, random);
        for (const int rank : ranks) {
          world.Compute(rank, leaves);
          // Some frames reach ranks that have not computed yet.
          for (std::uint32_t i = random() % 8; i > 0; --i) world.DeliverOne(random);
        }
        while (world.DeliverOne(random)) {
        }
        for (int rank = 0; rank < world_size; ++rank) {
          ASSERT_TRUE(world.at(rank).done());
          ASSERT_EQ(RootOf(world.at(rank)), want) << "rank " << rank;
        }
      }
    }
  }
}

// After a loss the lost rank's shards are reassigned as single blocks, and a joiner has none.
TEST(Reduction, TakesAnyCompleteMap) {
  std::mt19937 random(21);
  const auto leaves = RandomLeaves(8, 100, random);
  const ShardMap map{.logical_shards = 8,
                     .blocks_of_rank = {{{0, 2}, {2, 1}, {7, 1}}, {}, {{3, 1}, {4, 2}, {6, 1}}}};
  World world(8, 3, 100, 64);
  world.Begin(map, 9, 31);
  for (int rank = 0; rank < 3; ++rank) world.Compute(rank, leaves);
  while (world.DeliverOne(random)) {
  }
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(world.at(rank).done());
    EXPECT_EQ(RootOf(world.at(rank)), PlainMean(leaves, 31));
  }
}

TEST(Reduction, TakesMapsThatAreDealtAtRandom) {
  std::mt19937 random(Seed());
  for (int i = 0; i < 100; ++i) {
    const int shards = 1 << random() % 6;
    const int world_size = 1 + static_cast<int>(random() % 6);
    const std::size_t elements = random() % 300;
    ShardMap map{.logical_shards = shards,
                 .blocks_of_rank =
                     std::vector<std::vector<ShardBlock>>(static_cast<std::size_t>(world_size))};
    DealShards(
        {.first = 0, .count = shards}, [&](unsigned count) { return random() % count; }, map);
    ASSERT_TRUE(IsComplete(map));
    const auto leaves = RandomLeaves(shards, elements, random);
    World world(shards, world_size, elements, 1 + random() % 200);
    world.Begin(map, 0, 3);
    for (int rank = 0; rank < world_size; ++rank) world.Compute(rank, leaves);
    while (world.DeliverOne(random)) {
    }
    for (int rank = 0; rank < world_size; ++rank) {
      ASSERT_TRUE(world.at(rank).done());
      ASSERT_EQ(RootOf(world.at(rank)), PlainMean(leaves, 3));
    }
  }
}

// The result has the same bits whatever is finished when, however buckets are cut, and whatever is
// sent during the backward pass.
TEST(Reduction, OverlapsWithTheBackwardPass) {
  std::mt19937 random(Seed());
  for (int i = 0; i < 200; ++i) {
    const int shards = 1 << random() % 6;
    const int world_size = 1 + static_cast<int>(random() % 5);
    const std::size_t elements = random() % 400;
    const auto leaves = RandomLeaves(shards, elements, random);
    World world(shards, world_size, elements,
                BucketSizes{.first = 1 + random() % 100, .rest = 1 + random() % 200});
    for (Tick tick = 0; tick < 2; ++tick) {
      world.Begin(AssignShards(shards, world_size), tick, 7);
      for (int rank = 0; rank < world_size; ++rank) world.ComputeInParts(rank, leaves, random);
      while (world.DeliverOne(random)) {
      }
      for (int rank = 0; rank < world_size; ++rank) {
        ASSERT_TRUE(world.at(rank).done());
        ASSERT_EQ(RootOf(world.at(rank)), PlainMean(leaves, 7));
      }
    }
  }
}

// A tick may have other buckets than the one before.
TEST(Reduction, TakesOtherBucketsInTheNextTick) {
  std::mt19937 random(27);
  const auto leaves = RandomLeaves(4, 200, random);
  Reduction reduction(200, [](int, Frame) { FAIL() << "alone nothing is sent"; });
  GradientAccumulator accumulator(200, 4);
  const ShardMap map = AssignShards(4, 1);
  const auto plan = std::make_shared<const ReductionPlan>(map, std::vector<int>{}, 0);
  for (const BucketSizes& sizes : {BucketSizes{16, 32}, {200, 200}, {64, 16}, {16, 32}}) {
    reduction.Begin({.plan = plan, .divisor = 4, .buckets = sizes});
    accumulator.Begin(map.logical_shards, map.blocks_of_rank[0], sizes);
    while (!accumulator.done()) {
      std::ranges::copy(leaves[static_cast<std::size_t>(accumulator.next_shard())],
                        accumulator.Leaf().begin());
      accumulator.Accumulate();
    }
    reduction.AddLocal(accumulator.finished().back());
    ASSERT_TRUE(reduction.done());
    EXPECT_EQ(RootOf(reduction), PlainMean(leaves, 4));
  }
}

TEST(Reduction, SendsWhatTheDesignSays) {
  constexpr std::size_t kElements = 1 << 14;
  std::mt19937 random(22);
  for (const auto& [shards, world_size] :
       {std::pair{16, 1}, {16, 2}, {16, 4}, {16, 8}, {16, 16}, {32, 20}}) {
    const auto leaves = RandomLeaves(shards, kElements, random);
    World world(shards, world_size, kElements, kElements);
    world.Begin(AssignShards(shards, world_size), 0, 1);
    for (int rank = 0; rank < world_size; ++rank) world.Compute(rank, leaves);
    while (world.DeliverOne(random)) {
    }
    const auto w = static_cast<double>(world_size);
    EXPECT_DOUBLE_EQ(static_cast<double>(world.floats_sent()), 2.0 * (w - 1) * kElements)
        << "a ring's volume, world size " << world_size;
  }
}

// The volumes are in gradients, summed over the traffic between hosts: first if each rank sends for
// itself, then if hosts send local sums.
TEST(Reduction, HostsSendEachSumOnce) {
  constexpr std::size_t kElements = 16 * 24;  // pieces of all these world sizes are equal
  const struct {
    const char* name;
    int shards;
    std::vector<int> host_of_rank;
    double each_for_itself;
    double want;
    std::vector<bool> computes = std::vector<bool>(host_of_rank.size(), true);
  } kCases[] = {
      {"two hosts of four", 32, {0, 0, 0, 0, 1, 1, 1, 1}, 8, 2},
      {"four hosts of two", 32, {0, 0, 1, 1, 2, 2, 3, 3}, 12, 6},
      {"two hosts of two", 16, {0, 0, 1, 1}, 4, 2},
      {"of several blocks a rank", 32, {0, 0, 1, 1, 2, 2}, 12, 6},
      {"one host", 8, {5, 5, 5, 5}, 0, 0},
      {"as many hosts as ranks", 8, {3, 1, 2, 0}, 6, 6},
      {"of different sizes", 8, {0, 0, 0, 1}, 3, 2.25},
      {"neighbours on different hosts have no sum in common", 4, {0, 1, 0, 1}, 4, 3},
      {"a host that only catches up", 8, {0, 0, 1, 1}, 2, 1, {true, true, false, false}},
      {"a rank that does not compute speaks for none",
       8,
       {0, 0, 1, 1},
       4,
       7.0 / 3,
       {true, true, false, true}},
  };
  std::mt19937 random(28);
  for (const auto& item : kCases) {
    SCOPED_TRACE(item.name);
    const int world_size = static_cast<int>(item.host_of_rank.size());
    const auto leaves = RandomLeaves(item.shards, kElements, random);
    for (const bool told : {false, true}) {
      World world(item.shards, world_size, kElements, kElements);
      world.SetHosts(item.host_of_rank, told);
      world.Begin(AssignShardsAmong(item.shards, item.computes), 0, 7);
      for (int rank = 0; rank < world_size; ++rank) world.Compute(rank, leaves);
      while (world.DeliverOne(random)) {
      }
      for (int rank = 0; rank < world_size; ++rank) {
        ASSERT_TRUE(world.at(rank).done());
        ASSERT_EQ(RootOf(world.at(rank)), PlainMean(leaves, 7));
      }
      EXPECT_DOUBLE_EQ(static_cast<double>(world.floats_between_hosts()) / kElements,
                       told ? item.want : item.each_for_itself);
    }
  }
}

// A rank sums its host's contributions to the pieces for which it is the relay. It needs memory for
// the root, and for those pieces.
TEST(Reduction, SumsForOthersTakeTheMemoryOfTheirPieces) {
  constexpr std::size_t kElements = 32 << 10;
  const struct {
    const char* name;
    int shards;
    std::vector<int> host_of_rank;
    double want;  // in gradients, over all ranks
  } kCases[] = {
      {"each of eight speaks for one of eight pieces", 32, {0, 0, 0, 0, 1, 1, 1, 1}, 8 + 1},
      {"one host", 8, {5, 5, 5, 5}, 4},
      {"no rank shares a host", 8, {3, 1, 2, 0}, 4},
  };
  std::mt19937 random(29);
  for (const auto& item : kCases) {
    SCOPED_TRACE(item.name);
    const int world_size = static_cast<int>(item.host_of_rank.size());
    const auto leaves = RandomLeaves(item.shards, kElements, random);
    World world(item.shards, world_size, kElements, kElements / 4);
    world.SetHosts(item.host_of_rank);
    for (Tick tick = 0; tick < 2; ++tick) {
      world.Begin(AssignShards(item.shards, world_size), tick, 7);
      for (int rank = 0; rank < world_size; ++rank) world.Compute(rank, leaves);
      while (world.DeliverOne(random)) {
      }
      for (int rank = 0; rank < world_size; ++rank) {
        ASSERT_TRUE(world.at(rank).done());
        ASSERT_EQ(RootOf(world.at(rank)), PlainMean(leaves, 7));
      }
    }
    EXPECT_DOUBLE_EQ(static_cast<double>(world.floats_allocated()) / kElements, item.want);
  }
}

// For any assignment of shards and any distribution over hosts.
TEST(Reduction, HostsChangeNoBit) {
  std::mt19937 random(Seed());
  for (int i = 0; i < 200; ++i) {
    const int shards = 1 << random() % 6;
    const int world_size = 1 + static_cast<int>(random() % 8);
    const std::size_t elements = random() % 400;
    const auto leaves = RandomLeaves(shards, elements, random);
    World world(shards, world_size, elements,
                BucketSizes{.first = 1 + random() % 100, .rest = 1 + random() % 200});
    for (Tick tick = 0; tick < 3; ++tick) {
      std::vector<int> host_of_rank;
      for (int rank = 0; rank < world_size; ++rank) {
        host_of_rank.push_back(static_cast<int>(random() % 3));
      }
      world.SetHosts(std::move(host_of_rank));
      ShardMap map = AssignShards(shards, world_size);
      if (random() % 2 == 0) {
        map.blocks_of_rank.assign(static_cast<std::size_t>(world_size), {});
        DealShards(
            {.first = 0, .count = shards}, [&](unsigned count) { return random() % count; }, map);
      }
      world.Begin(map, tick, 7);
      for (int rank = 0; rank < world_size; ++rank) world.ComputeInParts(rank, leaves, random);
      while (world.DeliverOne(random)) {
      }
      for (int rank = 0; rank < world_size; ++rank) {
        ASSERT_TRUE(world.at(rank).done());
        ASSERT_EQ(RootOf(world.at(rank)), PlainMean(leaves, 7));
      }
    }
  }
}

TEST(Reduction, IsNotDoneBeforeItBegan) {
  World world(2, 1, 10, 10);
  EXPECT_FALSE(world.at(0).done());
  EXPECT_EQ(world.at(0).OnFrame(0, {}).error().code, ErrorCode::kConflict);
}

TEST(Reduction, AModelWithoutGradientIsDoneAtOnce) {
  World world(2, 2, 0, 10);
  world.Begin(AssignShards(2, 2), 0, 1);
  EXPECT_TRUE(world.at(0).done());
}

TEST(Reduction, RefusesFramesThatDoNotFit) {
  std::mt19937 random(23);
  const auto leaves = RandomLeaves(4, 64, random);
  World world(4, 2, 64, 64);
  world.Begin(AssignShards(4, 2), 3, 4);
  world.Compute(0, leaves);
  world.Compute(1, leaves);
  ASSERT_EQ(world.sent().size(), 2U);
  const auto to_rank_0 = std::ranges::find(world.sent(), 0, &Sent::to);
  const Frame good = to_rank_0->frame;
  ASSERT_EQ(good.header.kind, FrameKind::kNode);
  ASSERT_EQ(good.header.node, 3U);

  struct Case {
    std::string name;
    ErrorCode code;
    int from;
    Frame frame;
  };
  const auto with = [&](auto change) {
    Frame frame = good;
    change(frame);
    return frame;
  };
  using enum ErrorCode;
  const Case cases[] = {
      {"older membership", kConflict, 1, with([](Frame& f) { f.header.membership.counter = 4; })},
      {"later tick", kConflict, 1, with([](Frame& f) { f.header.tick = 4; })},
      {"no such bucket", kInvalid, 1, with([](Frame& f) { f.header.bucket = 1; })},
      {"no node of the map", kInvalid, 1, with([](Frame& f) { f.header.node = 7; })},
      {"node 0", kInvalid, 1, with([](Frame& f) { f.header.node = 0; })},
      {"huge node", kInvalid, 1, with([](Frame& f) { f.header.node = UINT32_MAX; })},
      {"the receiver's node", kInvalid, 1, with([](Frame& f) { f.header.node = 2; })},
      {"another's piece", kInvalid, 1, with([](Frame& f) { f.header.piece = 1; })},
      {"too short", kInvalid, 1,
       with([](Frame& f) { f.payload.view = f.payload.view.first(f.payload.view.size() - 1); })},
      {"empty", kInvalid, 1, with([](Frame& f) { f.payload = {}; })},
      {"from itself", kInvalid, 0, good},
      {"from no rank", kInvalid, 2, good},
      {"from below", kInvalid, -1, good},
      {"a root with the wrong node", kInvalid, 1, with([](Frame& f) {
         f.header.kind = FrameKind::kRoot;
         f.header.piece = 1;
       })},
      {"another kind", kInvalid, 1, with([](Frame& f) { f.header.kind = FrameKind::kTrailer; })},
  };
  for (const Case& c : cases) {
    const Status taken = world.at(0).OnFrame(c.from, c.frame);
    ASSERT_FALSE(taken) << c.name;
    EXPECT_EQ(taken.error().code, c.code) << c.name << ": " << taken.error();
  }

  // After all these frames the tick still gives the right result, and duplicates change nothing.
  ASSERT_TRUE(world.at(0).OnFrame(1, good));
  EXPECT_EQ(world.at(0).OnFrame(1, good).error().code, kAlreadyExists);
  std::vector<Sent> delivered;
  while (!world.sent().empty()) {
    const Sent next = std::move(world.sent().back());
    world.sent().pop_back();
    if (next.to == 0 && next.frame.header.kind == FrameKind::kNode) continue;
    ASSERT_TRUE(world.at(next.to).OnFrame(next.from, next.frame));
    delivered.push_back(next);
  }
  ASSERT_FALSE(delivered.empty());
  for (const Sent& again : delivered)
    EXPECT_EQ(world.at(again.to).OnFrame(again.from, again.frame).error().code, kAlreadyExists);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(world.at(rank).done());
    EXPECT_EQ(RootOf(world.at(rank)), PlainMean(leaves, 4));
  }
}

TEST(Reduction, TakesBytesThatAreNotAligned) {
  std::mt19937 random(24);
  const auto leaves = RandomLeaves(2, 64, random);
  World world(2, 2, 64, 64);
  world.Begin(AssignShards(2, 2), 0, 1);
  world.Compute(0, leaves);
  world.Compute(1, leaves);
  while (!world.sent().empty()) {
    Sent next = std::move(world.sent().back());
    world.sent().pop_back();
    const auto view = next.frame.payload.view;
    const auto moved = std::make_shared<std::vector<std::byte>>(view.size() + 1);
    std::memcpy(moved->data() + 1, view.data(), view.size());
    next.frame.payload = {.owner = moved, .view = std::span(*moved).subspan(1)};
    ASSERT_TRUE(world.at(next.to).OnFrame(next.from, next.frame));
  }
  EXPECT_EQ(RootOf(world.at(0)), PlainMean(leaves, 1));
  EXPECT_EQ(RootOf(world.at(1)), PlainMean(leaves, 1));
}

// A transport gets a receive buffer only for an expected piece of the root, and only once.
TEST(Reduction, GivesAPlaceToWhatIsWelcomeOnly) {
  std::mt19937 random(26);
  const auto leaves = RandomLeaves(2, 64, random);
  World world(2, 2, 64, 64);
  EXPECT_TRUE(world.at(0).ReceiveBufferFor(1, {.kind = FrameKind::kRoot}, 128).view.empty());
  world.Begin(AssignShards(2, 2), 3, 1);
  world.Compute(0, leaves);
  world.Compute(1, leaves);
  int placed = 0;
  while (!world.sent().empty()) {
    Sent next = std::move(world.sent().back());
    world.sent().pop_back();
    Reduction& to = world.at(next.to);
    const std::size_t size = next.frame.payload.view.size();
    const MutableBytes place = to.ReceiveBufferFor(next.from, next.frame.header, size);
    ASSERT_EQ(place.view.empty(), next.frame.header.kind != FrameKind::kRoot);
    if (!place.view.empty()) {
      ++placed;
      const auto refused = [&](int rank, void (*change)(FrameHeader&), std::size_t bytes) {
        FrameHeader header = next.frame.header;
        change(header);
        return to.ReceiveBufferFor(rank, header, bytes).view.empty();
      };
      const auto nothing = [](FrameHeader&) {};
      EXPECT_TRUE(refused(next.from, nothing, size - 4));
      EXPECT_TRUE(refused(next.to, nothing, size));
      EXPECT_TRUE(refused(2, nothing, size));
      EXPECT_TRUE(refused(-1, nothing, size));
      EXPECT_TRUE(refused(next.from, [](FrameHeader& h) { ++h.tick; }, size));
      EXPECT_TRUE(refused(next.from, [](FrameHeader& h) { ++h.membership.counter; }, size));
      EXPECT_TRUE(refused(next.from, [](FrameHeader& h) { h.bucket = 1; }, size));
      EXPECT_TRUE(refused(next.from, [](FrameHeader& h) { h.piece ^= 1; }, size));
      std::ranges::copy(next.frame.payload.view, place.view.begin());
      next.frame.payload = {.owner = place.owner, .view = place.view};
    }
    ASSERT_TRUE(to.OnFrame(next.from, next.frame));
    EXPECT_TRUE(to.ReceiveBufferFor(next.from, next.frame.header, size).view.empty())
        << "the piece has arrived";
  }
  EXPECT_EQ(placed, 2);
  EXPECT_EQ(RootOf(world.at(0)), PlainMean(leaves, 1));
  EXPECT_EQ(RootOf(world.at(1)), PlainMean(leaves, 1));
}

// A tick was aborted: frames that are still being sent keep their bytes while the next try runs.
TEST(Reduction, StartsOverWithoutTouchingWhatIsUnderWay) {
  std::mt19937 random(25);
  const auto first = RandomLeaves(4, 64, random);
  const auto second = RandomLeaves(4, 64, random);
  World world(4, 2, 64, 64);
  world.Begin(AssignShards(4, 2), 0, 4);
  world.Compute(0, first);
  world.Compute(1, first);
  while (world.sent().size() > 1) world.DeliverOne(random);
  const std::vector<Sent> under_way = world.sent();
  std::vector<std::vector<std::byte>> bytes;
  for (const Sent& sent : under_way)
    bytes.emplace_back(sent.frame.payload.view.begin(), sent.frame.payload.view.end());
  world.sent().clear();

  world.Begin(AssignShards(4, 2), 1, 4);
  world.Compute(0, second);
  world.Compute(1, second);
  while (world.DeliverOne(random)) {
  }
  EXPECT_EQ(RootOf(world.at(0)), PlainMean(second, 4));
  EXPECT_EQ(RootOf(world.at(1)), PlainMean(second, 4));
  for (std::size_t i = 0; i < under_way.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(under_way[i].frame.payload.view, bytes[i]));
}

TEST(PieceOf, CutsOnCacheLines) {
  struct Case {
    std::size_t elements;
    int pieces;
    std::vector<std::size_t> sizes;
  };
  const Case cases[] = {
      {64, 2, {32, 32}},   {64, 3, {32, 16, 16}}, {65, 2, {48, 17}},
      {10, 3, {10, 0, 0}}, {0, 2, {0, 0}},        {160, 1, {160}},
  };
  for (const Case& c : cases) {
    std::size_t next = 0;
    for (int piece = 0; piece < c.pieces; ++piece) {
      const ElementRange range = PieceOf(c.elements, c.pieces, piece);
      EXPECT_EQ(range.begin, next);
      EXPECT_EQ(range.size, c.sizes[static_cast<std::size_t>(piece)]);
      next += range.size;
    }
    EXPECT_EQ(next, c.elements);
  }
}

}  // namespace
}  // namespace pliant
