#include "trainer/protocol/opening.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

using Next = Opening::Next;

const StateSummary kNothing{};
// A state reached through a boundary.
StateSummary At(Tick ticks) {
  return {.position = {.has_state = true, .applied_ticks = ticks}, .current = true};
}
// A state left by a crash.
StateSummary LeftAt(Tick ticks) {
  return {.position = {.has_state = true, .applied_ticks = ticks}};
}

TEST(Opening, WaitsUntilAllHaveSaidWhatTheyHold) {
  Opening opening(3, 0, At(4));
  EXPECT_EQ(opening.next(), Next::kWait);
  opening.OnOpen(2, At(4));
  EXPECT_EQ(opening.next(), Next::kWait);
  opening.OnOpen(1, At(4));
  EXPECT_EQ(opening.next(), Next::kSayReady);
}

TEST(Opening, BeginsWhenAllAreReady) {
  Opening opening(2, 1, At(4));
  opening.OnOpen(0, At(4));
  opening.OnOpened(0);  // the other member may be quicker
  EXPECT_EQ(opening.next(), Next::kSayReady);
  opening.SetReportedReady();
  EXPECT_EQ(opening.next(), Next::kBegin);
}

TEST(Opening, ALinkIsNotTriedForEver) {
  Opening opening(3, 1, At(4));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(opening.OnLinkLost(0));
  EXPECT_FALSE(opening.OnLinkLost(0));
  EXPECT_TRUE(opening.OnLinkLost(2)) << "each link has its own count";
}

TEST(Opening, AMemberThatIsBehindCatchesUp) {
  const struct {
    const char* name;
    StateSummary rank0;
    StateSummary own;  // rank 1 is this member
    StateSummary rank2;
    Next want;
    std::vector<bool> in_sync;
  } kCases[] = {
      {"all hold it", At(5), At(5), At(5), Next::kSayReady, {true, true, true}},
      {"one tick behind", At(5), At(4), At(5), Next::kSayReady, {true, false, true}},
      {"only the last has it", At(3), At(4), At(5), Next::kSayReady, {false, false, true}},
      {"a joiner", At(4), kNothing, At(4), Next::kSayReady, {true, false, true}},
      {"a state at tick 0 is a state",
       At(0),
       kNothing,
       At(0),
       Next::kSayReady,
       {true, false, true}},
      {"this one is furthest", At(3), At(4), kNothing, Next::kSayReady, {false, true, false}},
      {"without any state rank 0 makes one", kNothing, kNothing, kNothing, Next::kWait, {}},
  };
  for (const auto& test : kCases) {
    Opening opening(3, 1, test.own);
    opening.OnOpen(0, test.rank0);
    opening.OnOpen(2, test.rank2);
    EXPECT_EQ(opening.next(), test.want) << test.name;
    if (!test.in_sync.empty()) {
      EXPECT_EQ(opening.in_sync(), test.in_sync) << test.name;
    }
  }
}

// Rank 0 announces, and writes checkpoints and metrics.
TEST(Opening, RankZeroTakesTheStateFirst) {
  Opening zero(3, 0, At(4));
  Opening two(3, 2, kNothing);
  for (Opening* const opening : {&zero, &two}) opening->OnOpen(1, At(5));
  two.OnOpen(0, At(4));
  zero.OnOpen(2, kNothing);
  EXPECT_EQ(zero.next(), Next::kFetch);
  EXPECT_EQ(zero.source(), 1);
  EXPECT_EQ(two.next(), Next::kSayReady);
  two.SetReportedReady();
  two.OnOpened(1);
  EXPECT_EQ(two.next(), Next::kWait) << "it waits for rank 0";
  zero.SetOwn(At(5));
  EXPECT_EQ(zero.next(), Next::kSayReady);
  two.OnOpen(0, zero.own());
  two.OnOpened(0);
  EXPECT_EQ(two.next(), Next::kBegin);
  EXPECT_EQ(two.in_sync(), (std::vector<bool>{true, true, false}));
}

TEST(Opening, RankZeroRestoresWhenNobodyHasAState) {
  Opening zero(2, 0, kNothing);
  Opening one(2, 1, kNothing);
  zero.OnOpen(1, one.own());
  one.OnOpen(0, zero.own());
  EXPECT_EQ(zero.next(), Next::kRestore);
  zero.SetOwn(At(30));
  EXPECT_EQ(zero.next(), Next::kSayReady);
  one.OnOpen(0, zero.own());
  EXPECT_EQ(one.next(), Next::kSayReady);
  EXPECT_EQ(one.in_sync(), (std::vector<bool>{true, false}));
}

TEST(Opening, AfterACrashRankZeroLooksForACheckpointThatIsAhead) {
  Opening zero(2, 0, LeftAt(3));
  Opening one(2, 1, LeftAt(4));
  zero.OnOpen(1, one.own());
  one.OnOpen(0, zero.own());
  EXPECT_EQ(zero.next(), Next::kRestore);
  EXPECT_EQ(one.next(), Next::kWait);
  EXPECT_EQ(zero.furthest(), LeftAt(4));
  zero.SetOwn(At(3));  // no checkpoint was ahead
  one.OnOpen(0, zero.own());
  EXPECT_EQ(zero.next(), Next::kFetch);
  EXPECT_EQ(zero.source(), 1);
  EXPECT_EQ(one.next(), Next::kSayReady);
}

// Nodes of an aborted tick count. A member that is behind receives the state, but has no nodes of
// the tick after it.
TEST(Opening, CountsWhatIsFinishedOfTheTickThatItBeginsWith) {
  StateSummary ahead = LeftAt(5);
  ahead.finished = {4};
  StateSummary behind = LeftAt(4);
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

// Finished nodes belong to the tree of the batch that their sender said. Only those of the common
// batch count.
TEST(Opening, ASummaryThatDiffersFromTheOthersIsNotInSync) {
  const StateSummary told = LeftAt(80);
  StateSummary grown = told;
  grown.position.batches = {{.epoch = 1, .doublings = 1}};
  grown.finished = {31};
  StateSummary measured = told;
  measured.position.noise = {.trace = 3, .square = 1, .steps = 2};
  for (const StateSummary& lie : {grown, measured}) {
    for (const int liar : {0, 1, 2}) {
      Opening opening(3, 1, liar == 1 ? lie : told);
      opening.OnOpen(0, liar == 0 ? lie : told);
      opening.OnOpen(2, liar == 2 ? lie : told);
      std::vector<bool> in_sync(3, true);
      in_sync[static_cast<std::size_t>(liar)] = false;
      EXPECT_EQ(opening.in_sync(), in_sync) << "not even with the lowest rank: " << liar;
      EXPECT_EQ(opening.furthest(), told) << liar;
      EXPECT_EQ(opening.source(), liar == 0 ? 1 : 0);
      EXPECT_EQ(opening.finished(), std::vector<std::vector<NodeIndex>>(3)) << liar;
    }
  }
  Opening two(2, 1, told);
  two.OnOpen(0, grown);
  EXPECT_EQ(two.in_sync(), (std::vector<bool>{true, false})) << "one against one: the lowest rank";
}

TEST(Opening, AloneItNeedsNobody) {
  Opening opening(1, 0, kNothing);
  EXPECT_EQ(opening.next(), Next::kRestore);
  opening.SetOwn(At(0));
  EXPECT_EQ(opening.next(), Next::kSayReady);
  opening.SetReportedReady();
  EXPECT_EQ(opening.next(), Next::kBegin);
}

// A job of 77 ticks, each of 16 samples in 8 shards.
Schedule Of77Ticks(int epochs = 1) {
  return *Schedule::Make({.train_samples = 77U * 16,
                          .epochs = static_cast<std::uint64_t>(epochs),
                          .global_batch_size = 16,
                          .logical_shards = 8,
                          .max_doublings = 2});
}

TEST(StateSummary, TravelsInAFrame) {
  const StateSummary holding{.position = {.has_state = true,
                                          .applied_ticks = 77,
                                          .lineage = {3, 4},
                                          .evaluation = {.samples = 12, .loss = 0.5, .correct = 11},
                                          .last_line = R"({"tick":76})",
                                          .noise = {.trace = 5, .square = -0.1, .steps = 3.7}},
                             .current = true,
                             .finished = {2, 12}};
  const Bytes bytes = EncodeStateSummary(holding);
  const Result<StateSummary> back = DecodeStateSummary(bytes.view, Of77Ticks(), true);
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(*back, holding);
  EXPECT_FALSE(DecodeStateSummary(bytes.view.first(bytes.view.size() - 1), Of77Ticks(), true));
  EXPECT_FALSE(DecodeStateSummary({}, Of77Ticks(), true));
}

TEST(StateSummary, RefusesStatesOfAnotherJob) {
  const struct {
    const char* name;
    StateSummary holding;
    bool bitwise;
    bool taken;
  } kCases[] = {
      {"of the job's end", At(77), true, true},
      {"of a tick after it", At(78), true, false},
      {"of one where numbers end", At(~Tick{0}), true, false},
      {"even without a state", {.position = {.applied_ticks = 78}}, true, false},
      {"with the last node of the tree", {.finished = {15}}, true, true},
      {"with one after it", {.finished = {16}}, true, false},
      {"with none", {.finished = {0}}, true, false},
      {"with a part of a tick of which nothing is kept", {.finished = {1}}, false, false},
      {"with a window that is none", {.position = {.noise = {.steps = 1e9}}}, true, false},
      {"with numbers that are none",
       {.position = {.noise = {.trace = std::nan(""), .steps = 1}}},
       true,
       false},
      {"with nothing of it", {.position = {.has_state = true, .applied_ticks = 3}}, false, true},
  };
  for (const auto& c : kCases) {
    const Bytes bytes = EncodeStateSummary(c.holding);
    EXPECT_EQ(DecodeStateSummary(bytes.view, Of77Ticks(), c.bitwise).has_value(), c.taken)
        << c.name;
  }
}

TEST(StateSummary, HasTheSegmentsOfItsTicks) {
  const Schedule schedule = Of77Ticks(/*epochs=*/3);
  const struct {
    const char* name;
    BatchSegments batches;
    Tick applied;
    std::vector<NodeIndex> finished;
    bool taken;
  } kCases[] = {
      {"none", {}, 231, {}, true},
      {"a doubled epoch has half the ticks", {{.epoch = 2, .doublings = 1}}, 154 + 39, {}, true},
      {"and no more", {{.epoch = 2, .doublings = 1}}, 154 + 40, {}, false},
      {"it has twice the nodes", {{.epoch = 2, .doublings = 1}}, 154, {31}, true},
      {"and no more nodes", {{.epoch = 2, .doublings = 1}}, 154, {32}, false},
      {"right after the decision", {{.epoch = 2, .doublings = 1}}, 154, {}, true},
      {"not yet before it", {{.epoch = 2, .doublings = 1}}, 153, {}, false},
      {"of the future",
       {{.epoch = 1, .doublings = 1}, {.epoch = 2, .doublings = 2}},
       78,
       {},
       false},
      {"the first epoch is not doubled", {{.epoch = 0, .doublings = 1}}, 1, {}, false},
      {"nothing is doubled twice at once", {{.epoch = 1, .doublings = 2}}, 1, {}, false},
      {"or less than not at all", {{.epoch = 1, .doublings = -1}}, 1, {}, false},
      {"or after the end", {{.epoch = 3, .doublings = 1}}, 1, {}, false},
      {"out of order", {{.epoch = 2, .doublings = 1}, {.epoch = 1, .doublings = 2}}, 1, {}, false},
  };
  for (const auto& c : kCases) {
    const StateSummary holding{
        .position = {.has_state = true, .applied_ticks = c.applied, .batches = c.batches},
        .finished = c.finished};
    const auto back = DecodeStateSummary(EncodeStateSummary(holding).view, schedule, true);
    EXPECT_EQ(back.has_value(), c.taken) << c.name;
    EXPECT_TRUE(!back || *back == holding) << c.name;
  }
}

TEST(StateSummary, HasNoMoreDoublingsThanTheJob) {
  const struct {
    int max_doublings;
    bool taken;
  } kCases[] = {{2, true}, {1, true}, {0, false}};
  const Bytes bytes = EncodeStateSummary({.position = {
                                              .has_state = true,
                                              .applied_ticks = 100,
                                              .batches = {{.epoch = 1, .doublings = 1}},
                                          }});
  for (const auto& c : kCases) {
    DataSpec spec = Of77Ticks(/*epochs=*/3).spec();
    spec.max_doublings = c.max_doublings;
    EXPECT_EQ(DecodeStateSummary(bytes.view, *Schedule::Make(spec), true).has_value(), c.taken)
        << c.max_doublings;
  }
}

}  // namespace
}  // namespace pliant
