#include "trainer/runtime/opening.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {

using Next = Opening::Next;

const Holding kNothing{};
// Through a boundary.
Holding At(Tick ticks) { return {.has_state = true, .applied_ticks = ticks, .current = true}; }
// After a crash.
Holding LeftAt(Tick ticks) { return {.has_state = true, .applied_ticks = ticks}; }

TEST(Opening, WaitsUntilAllHaveSaidWhatTheyHold) {
  Opening opening(3, 0, At(4));
  EXPECT_EQ(opening.next(), Next::kWait);
  opening.OnOpen(2, At(4));
  EXPECT_EQ(opening.next(), Next::kWait);
  opening.OnOpen(1, At(4));
  EXPECT_EQ(opening.next(), Next::kHold);
}

TEST(Opening, BeginsWhenAllHoldTheState) {
  Opening opening(2, 1, At(4));
  opening.OnOpen(0, At(4));
  opening.OnOpened(0);  // the other may be quicker
  EXPECT_EQ(opening.next(), Next::kHold);
  opening.SetTold();
  EXPECT_EQ(opening.next(), Next::kBegin);
}

TEST(Opening, WhoIsBehindTakesTheStateOfTheLowestRankThatIsFurthest) {
  const struct {
    const char* name;
    Holding rank0;
    Holding own;  // rank 1
    Holding rank2;
    Next want;
    int source;
  } kCases[] = {
      {"one tick behind", At(5), At(4), At(5), Next::kFetch, 0},
      {"only the last has it", At(3), At(4), At(5), Next::kFetch, 2},
      {"a joiner", At(4), kNothing, At(4), Next::kFetch, 0},
      {"a state at tick 0 is a state", kNothing, kNothing, At(0), Next::kFetch, 2},
      {"this one is furthest", At(3), At(4), kNothing, Next::kHold, 1},
      {"without any state rank 0 makes one", kNothing, kNothing, kNothing, Next::kWait, -1},
  };
  for (const auto& test : kCases) {
    Opening opening(3, 1, test.own);
    opening.OnOpen(0, test.rank0);
    opening.OnOpen(2, test.rank2);
    EXPECT_EQ(opening.next(), test.want) << test.name;
    if (test.want == Next::kFetch) {
      EXPECT_EQ(opening.source(), test.source) << test.name;
    }
  }
}

TEST(Opening, RankZeroRestoresWhenNobodyHasAState) {
  Opening zero(2, 0, kNothing);
  Opening one(2, 1, kNothing);
  zero.OnOpen(1, one.own());
  one.OnOpen(0, zero.own());
  EXPECT_EQ(zero.next(), Next::kRestore);
  zero.SetOwn(At(30));
  EXPECT_EQ(zero.next(), Next::kHold);
  one.OnOpen(0, zero.own());
  EXPECT_EQ(one.next(), Next::kFetch);
  one.SetOwn(At(30));
  EXPECT_EQ(one.next(), Next::kHold);
}

TEST(Opening, AfterACrashRankZeroLooksForACheckpointThatIsAhead) {
  Opening zero(2, 0, LeftAt(3));
  Opening one(2, 1, LeftAt(4));
  zero.OnOpen(1, one.own());
  one.OnOpen(0, zero.own());
  EXPECT_EQ(zero.next(), Next::kRestore);
  EXPECT_EQ(one.next(), Next::kWait);
  EXPECT_EQ(zero.furthest(), LeftAt(4));
  zero.SetOwn(At(3));  // there is none
  one.OnOpen(0, zero.own());
  EXPECT_EQ(zero.next(), Next::kFetch);
  EXPECT_EQ(zero.source(), 1);
  EXPECT_EQ(one.next(), Next::kHold);
}

// Of a tick that was given up. Who was behind comes with the state, and with nothing of the tick
// after it.
TEST(Opening, CountsWhatIsFinishedOfTheTickThatItBeginsWith) {
  Holding ahead = LeftAt(5);
  ahead.finished = {4};
  Holding behind = LeftAt(4);
  behind.finished = {5, 6};
  Opening opening(3, 0, ahead);
  opening.OnOpen(1, behind);
  opening.OnOpen(2, ahead);
  using Nodes = std::vector<std::vector<NodeIndex>>;
  EXPECT_EQ(opening.finished(), (Nodes{{4}, {}, {4}}));
  opening.OnOpen(1, LeftAt(5));
  EXPECT_EQ(opening.finished(), (Nodes{{4}, {}, {4}}));
  // A checkpoint was ahead.
  opening.SetOwn(At(9));
  EXPECT_EQ(opening.finished(), (Nodes{{}, {}, {}}));
}

TEST(Opening, AloneItNeedsNobody) {
  Opening opening(1, 0, kNothing);
  EXPECT_EQ(opening.next(), Next::kRestore);
  opening.SetOwn(At(0));
  EXPECT_EQ(opening.next(), Next::kHold);
  opening.SetTold();
  EXPECT_EQ(opening.next(), Next::kBegin);
}

TEST(Holding, TravelsInAFrame) {
  const Holding holding{.has_state = true,
                        .applied_ticks = 77,
                        .current = true,
                        .evaluation = {.samples = 12, .loss = 0.5, .correct = 11},
                        .last_line = R"({"tick":76})",
                        .finished = {2, 12}};
  const Bytes bytes = EncodeHolding(holding);
  const Result<Holding> back = DecodeHolding(bytes.view, 8);
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(*back, holding);
  EXPECT_FALSE(DecodeHolding(bytes.view.first(bytes.view.size() - 1), 8));
  EXPECT_FALSE(DecodeHolding({}, 8));
  EXPECT_FALSE(DecodeHolding(bytes.view, 4)) << "a tree over 4 shards has no node 12";
  EXPECT_FALSE(DecodeHolding(EncodeHolding({.finished = {0}}).view, 8));
}

}  // namespace
}  // namespace pliant
