#include "trainer/protocol/tick_round.h"

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

const LearnerId kA{.name = "a", .pod_uid = "u", .nonce = 1};
const Membership kNext{.id = {1, 9}, .members = {{kA, "x:1"}}};
const Membership kLater{.id = {2, 1}, .members = {}};

Trailer TrailerOf(const ShardMap& map, int rank) {
  Trailer trailer;
  for (const int shard : map.ShardsOf(rank)) {
    trailer.shards.push_back(
        {.shard = shard, .sums = {.samples = 2, .loss = 0.1 * (shard + 1), .correct = 1}});
  }
  return trailer;
}

std::vector<bool> All(const ShardMap& map) {
  return std::vector<bool>(static_cast<std::size_t>(map.world_size()), true);
}

TickRound RoundOf(const ShardMap& map, int self, bool needs_buffers,
                  const std::vector<bool>& in_sync) {
  TickRound round;
  round.Begin(map, self, needs_buffers, in_sync);
  return round;
}

TEST(TickRound, KnowsWhetherSomeShardsWeighAndOthersDoNot) {
  const ShardSums plain{.samples = 2};
  const ShardSums weighed{.samples = 2, .weight = 0};
  const ShardSums empty;
  EXPECT_FALSE(MixesWeights(std::array{plain, plain, empty}));
  EXPECT_FALSE(MixesWeights(std::array{weighed, empty, weighed})) << "one without samples";
  EXPECT_TRUE(MixesWeights(std::array{weighed, plain}));
}

TEST(Trailer, WithASumThatNobodyMaySendIsRefused) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::map<std::string, double> many;
  for (std::size_t i = 0; i <= kMaxNamedSums; ++i) many["n" + std::to_string(i)] = 1;
  const ShardSums wrong[] = {{.samples = 1, .weight = -1},
                             {.samples = 1, .weight = kNan},
                             {.samples = 1, .weight = kInfinity},
                             {.samples = 1, .named = many},
                             {.samples = 1, .named = {{"two words", 1}}},
                             {.samples = 1, .named = {{"loss", 1}}}};
  for (const ShardSums& sums : wrong) {
    const Trailer trailer{.shards = {{.shard = 0, .sums = sums}}};
    EXPECT_FALSE(DecodeTrailer(EncodeTrailer(trailer).view));
  }
}

TEST(Trailer, TravelsInAFrame) {
  const Trailer kTrailers[] = {
      {},
      {.shards = {{.shard = 3, .sums = {.samples = 4, .loss = 0.25, .correct = 2}}},
       .may_drain = true,
       .announced = kNext},
      {.shards = {}, .may_drain = false, .announced = kLater},
      {.in_sync = false},
      {.came_in_sync = {3, 5}},
      {.rounds = RoundsReport{.ready = true, .partner = {.version = 22809, .device = "a GPU"}}},
      {.shards = {}, .save = true, .state = StateDigest()},
      {.shards = {},
       .state = StateDigest{.runtime = 1, .tensors = {2, 0, 3}, .text = "{\"lr\":0.5}"}},
      {.shards = {}, .doublings = 3},
      {.checked_shard = 7},
      {.shards = {{.shard = 0, .sums = {.samples = 4}, .gradient_square = 0.125}}},
      {.shards = {{.shard = 0, .sums = {.samples = 4, .loss = 1, .weight = 9}},
                  {.shard = 1,
                   .sums = {.samples = 4, .weight = 0, .named = {{"a", 1}, {"b/c", -2}}}}}},
  };
  for (const Trailer& trailer : kTrailers) {
    const Bytes bytes = EncodeTrailer(trailer);
    const Result<Trailer> back = DecodeTrailer(bytes.view);
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(*back, trailer);
    for (std::size_t size = 0; size < bytes.view.size(); ++size) {
      EXPECT_FALSE(DecodeTrailer(bytes.view.first(size))) << size;
    }
  }
}

TEST(TickRound, IsDoneWithAllTrailersAndTheBuffers) {
  const ShardMap map = AssignShards(4, 3);
  TickRound round = RoundOf(map, 1, /*needs_buffers=*/true, All(map));
  EXPECT_EQ(round.buffers_rank(), 0);
  EXPECT_TRUE(round.OnTrailer(2, TrailerOf(map, 2)));
  round.OnLocal(TrailerOf(map, 1), {});
  EXPECT_TRUE(round.OnTrailer(0, TrailerOf(map, 0)));
  EXPECT_FALSE(round.done());
  EXPECT_TRUE(round.OnBuffers(0, {}));
  EXPECT_TRUE(round.done());
}

TEST(TickRound, KeepsTheSquaresByShard) {
  const ShardMap map = AssignShards(4, 2);
  TickRound round = RoundOf(map, 0, false, All(map));
  Trailer trailers[] = {TrailerOf(map, 0), TrailerOf(map, 1)};
  for (Trailer& trailer : trailers) {
    for (Trailer::Shard& shard : trailer.shards) shard.gradient_square = shard.shard + 0.5;
  }
  Trailer negative = trailers[1];
  negative.shards.back().gradient_square = -0.5;
  EXPECT_FALSE(round.OnTrailer(1, negative)) << "no gradient has this square";
  ASSERT_TRUE(round.OnTrailer(1, trailers[1]));
  round.OnLocal(trailers[0], {});
  ASSERT_TRUE(round.done());
  EXPECT_EQ(round.gradient_squares(), (std::vector<double>{0.5, 1.5, 2.5, 3.5}));
  round.Begin(map, 0, false, All(map));
  EXPECT_EQ(round.gradient_squares(), std::vector<double>(4)) << "those of the next tick";
}

TEST(TickRound, NamesWhatDiffersFromTheMostCommonState) {
  const ShardMap map = AssignShards(4, 4);
  const StateDict shape = {{.name = "model.a"}, {.name = "model.b"}};
  TickRound round = RoundOf(map, 3, false, All(map));
  const auto with = [&](int rank, std::vector<std::uint64_t> tensors) {
    Trailer trailer = TrailerOf(map, rank);
    trailer.state = StateDigest{.tensors = std::move(tensors)};
    return trailer;
  };
  Trailer long_text = with(0, {1, 3});
  long_text.state->text.resize(StateDigest::kMaxText + 1);
  EXPECT_FALSE(round.OnTrailer(0, long_text));
  ASSERT_TRUE(round.OnTrailer(0, with(0, {1, 3})));
  ASSERT_TRUE(round.OnTrailer(1, TrailerOf(map, 1)));
  ASSERT_TRUE(round.OnTrailer(2, with(2, {1, 2})));
  round.OnLocal(with(3, {1, 2}), {});
  EXPECT_EQ(round.Outcome().differing, std::vector<int>{0});
  EXPECT_EQ(round.MismatchOf(0, shape).name, "model.b");
}

TEST(TickRound, ComparesTheShardThatTwoHaveComputed) {
  const ShardMap map = AssignShards(4, 3);
  const SpotCheck check{.shard = 3, .owner = 2, .checker = 0};
  const std::optional<std::uint64_t> none;
  const struct {
    std::vector<std::optional<std::uint64_t>> digests;  // by rank
    bool unequal;
  } kCases[] = {
      {{5, none, 5}, false}, {{5, none, 6}, true},  {{5, 6, 5}, false},
      {{0, none, 1}, true},  {{none, 1, 2}, false}, {{1, 2, none}, false},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(testing::PrintToString(test.digests));
    TickRound round = RoundOf(map, 0, false, All(map));
    for (int rank = 2; rank >= 0; --rank) {
      Trailer trailer = TrailerOf(map, rank);
      trailer.checked_shard = test.digests[static_cast<std::size_t>(rank)];
      if (rank == 0) {
        round.OnLocal(trailer, {});
      } else {
        ASSERT_TRUE(round.OnTrailer(rank, trailer));
      }
    }
    EXPECT_EQ(round.AreUnequal(check), test.unequal);
    round.Begin(map, 0, false, All(map));
    EXPECT_FALSE(round.AreUnequal(check)) << "of the next tick";
  }
}

TEST(TickRound, RankZeroDecidesTheBatch) {
  const ShardMap map = AssignShards(4, 2);
  const auto with = [&](int rank, int doublings) {
    Trailer trailer = TrailerOf(map, rank);
    trailer.doublings = doublings;
    return trailer;
  };
  TickRound round = RoundOf(map, 1, false, All(map));
  EXPECT_FALSE(round.OnTrailer(0, with(0, -1)));
  EXPECT_TRUE(round.OnTrailer(0, with(0, 3)));
  round.OnLocal(TrailerOf(map, 1), {});
  EXPECT_EQ(round.Outcome().doublings, 3);
  round = RoundOf(map, 0, false, All(map));
  EXPECT_FALSE(round.OnTrailer(1, with(1, 3))) << "another rank does not";
  EXPECT_TRUE(round.OnTrailer(1, TrailerOf(map, 1)));
  round.OnLocal(TrailerOf(map, 0), {});
  EXPECT_EQ(round.Outcome().doublings, std::nullopt);
}

TEST(TickRound, SumsAreTheSameForEveryWorldSize) {
  TickOutcome alone;
  for (int world = 1; world <= 9; ++world) {
    const ShardMap map = AssignShards(8, world);
    TickRound round = RoundOf(map, world - 1, false, All(map));
    for (int rank = 0; rank + 1 < world; ++rank) {
      ASSERT_TRUE(round.OnTrailer(rank, TrailerOf(map, rank)));
    }
    round.OnLocal(TrailerOf(map, world - 1), {});
    ASSERT_TRUE(round.done());
    if (world == 1) alone = round.Outcome();
    EXPECT_EQ(round.Outcome().sums, alone.sums) << world;
    EXPECT_EQ(round.Outcome().sums.samples, 16) << world;
  }
}

TEST(TickRound, AllReadTheSameAnnouncement) {
  const ShardMap map = AssignShards(4, 2);
  Trailer first = TrailerOf(map, 0);
  Trailer second = TrailerOf(map, 1);
  first.announced = kNext;
  second.announced = kLater;
  for (const int self : {0, 1}) {
    TickRound round = RoundOf(map, self, false, All(map));
    round.OnLocal(self == 0 ? first : second, {});
    ASSERT_TRUE(round.OnTrailer(1 - self, self == 0 ? second : first));
    EXPECT_EQ(round.Outcome().announced, kLater) << "the newest announcement counts";
  }
}

TEST(TickRound, TheLastCallIsUnanimous) {
  const ShardMap map = AssignShards(2, 2);
  for (const bool other : {false, true}) {
    TickRound round = RoundOf(map, 0, false, All(map));
    Trailer own = TrailerOf(map, 0);
    own.may_drain = true;
    round.OnLocal(own, {});
    Trailer theirs = TrailerOf(map, 1);
    theirs.may_drain = other;
    ASSERT_TRUE(round.OnTrailer(1, theirs));
    EXPECT_EQ(round.Outcome().may_drain, other);
  }
}

TEST(TickRound, RefusesWhatAPeerHasNotToSend) {
  const ShardMap map = AssignShards(4, 2);
  TickRound round = RoundOf(map, 0, true, All(map));
  EXPECT_FALSE(round.OnTrailer(1, TrailerOf(map, 0))) << "the shards of another rank";
  EXPECT_FALSE(round.OnTrailer(1, {})) << "no shards";
  EXPECT_FALSE(round.OnBuffers(1, {})) << "it does not own shard 0";
  EXPECT_TRUE(round.OnTrailer(1, TrailerOf(map, 1)));
  EXPECT_FALSE(round.OnTrailer(1, TrailerOf(map, 1))) << "twice";
}

// Rank 1 catches up: its trailer tells its progress, and belongs to no tick.
TEST(TickRound, NobodyWaitsForOneThatCatchesUp) {
  const std::vector<bool> in_sync = {true, false, true};
  const ShardMap map = AssignShardsAmong(4, in_sync);
  TickRound round = RoundOf(map, 0, false, in_sync);
  EXPECT_FALSE(round.OnTrailer(1, {}));
  Trailer own = TrailerOf(map, 0);
  own.may_drain = true;
  round.OnLocal(own, {});
  EXPECT_FALSE(round.done());
  Trailer theirs = TrailerOf(map, 2);
  theirs.may_drain = true;
  theirs.came_in_sync = {1};
  ASSERT_TRUE(round.OnTrailer(2, theirs));
  ASSERT_TRUE(round.done());
  EXPECT_TRUE(round.Outcome().may_drain);
  EXPECT_EQ(round.Outcome().came_in_sync, std::vector{1})
      << "the member that received it tells the others";
  EXPECT_EQ(round.Outcome().sums.samples, 8);
}

TEST(TickRound, OnlyWhoCatchesUpComesInSync) {
  const std::vector<bool> in_sync = {true, true, false};
  const ShardMap map = AssignShardsAmong(4, in_sync);
  for (const int named : {-1, 0, 3}) {
    TickRound round = RoundOf(map, 0, false, in_sync);
    Trailer trailer = TrailerOf(map, 1);
    trailer.came_in_sync = {named};
    EXPECT_FALSE(round.OnTrailer(1, trailer)) << named;
  }
}

}  // namespace
}  // namespace pliant
