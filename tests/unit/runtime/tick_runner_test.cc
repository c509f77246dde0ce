#include "trainer/runtime/tick_runner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/sim_event_loop.h"
#include "tests/simulation/process.h"
#include "tests/simulation/toy_program.h"
#include "tests/unit/runtime/fake_compute.h"
#include "tests/unit/runtime/fake_peer_transport.h"
#include "trainer/protocol/wire.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kShardTime = milliseconds(12);
constexpr Tick kFirstStep = 0;
constexpr Tick kSecondStep = 1;
constexpr Tick kFirstEvaluation = 2;

// An epoch has two optimizer steps, each of four shards of four samples, and two ticks of
// evaluation.
const DataSpec kData{.train_samples = 32,
                     .test_samples = 32,
                     .epochs = 3,
                     .global_batch_size = 16,
                     .logical_shards = 4,
                     .seed = 5};

LearnerId Ticking(int rank) { return {.name = Format("learner-{}", rank), .nonce = 1}; }

// One learner, as rank `self` in memberships of `world_size` ranks.
struct TickerOf final : TickRunner::Owner, SampleLedger {
  TickerOf(SimEventLoop& event_loop, int world_size, int self, std::uint64_t check_every = 0)
      : loop(event_loop), self_rank(self), view(Ticking(self)) {
    Enter({1, 1}, world_size);
    for (int rank = 0; rank < world_size; ++rank)
      if (rank != self) transport.connected.insert(Ticking(rank));
    runner.emplace(check_every, TickRunner::Parts{.tasks = tasks,
                                                  .compute = compute,
                                                  .ledger = this,
                                                  .split = split,
                                                  .peers = peers,
                                                  .aborted = [this] { ++times_aborted; }});
  }

  Trailer MakeTrailer() override { return says; }
  void OnProgress() override { ++times_computed; }
  void OnTickFailed(const Error& error) override { failed = error; }
  void OnRoundsFailed(const std::string& why) override { rounds_failed = why; }
  void Computed(MembershipId membership, Tick tick, const std::vector<ShardTask>& given) override {
    std::string line = Format("{} tick {}:", ToString(membership), tick);
    for (const ShardTask& task : given) line += Format(" {}", task.shard);
    ledger.push_back(line);
  }
  void Committed(MembershipId /*membership*/, Tick /*tick*/) override {}

  void Enter(MembershipId id, int world_size) {
    Membership membership{.id = id, .members = {}};
    for (int rank = 0; rank < world_size; ++rank)
      membership.members.push_back({.id = Ticking(rank), .address = "x:1"});
    view.Enter(std::move(membership), {});
  }
  // `finished`: nodes of the tick, by rank. An empty `in_sync` means all.
  void Begin(Tick tick, const std::vector<std::vector<NodeIndex>>& finished = {},
             std::vector<bool> in_sync = {}) {
    const auto ranks = static_cast<std::size_t>(view.current().world_size());
    if (in_sync.empty()) in_sync.assign(ranks, true);
    team = MakeTeam(view.current(), std::move(in_sync),
                    finished.empty() ? std::vector<std::vector<NodeIndex>>(ranks) : finished, split,
                    tick);
    if (not_first) team.OnCommitted(TickKind::kTrain);
    group.applied_ticks = tick;
    computed_shards.clear();
    times_computed = times_aborted = 0;
    runner->Begin({.membership = view.current().id,
                   .number = tick,
                   .plan = schedule.At(tick),
                   .before = &group,
                   .self = self_rank,
                   .team = &team,
                   .exchange = ExchangeOf(tick),
                   .owner = this});
  }
  // nullptr in an evaluation.
  GradientExchange* ExchangeOf(Tick tick) {
    const TickPlan plan = schedule.At(tick);
    if (plan.kind != TickKind::kTrain) return nullptr;
    exchanges.emplace(
        GradientExchanges::Options{.elements = compute.info().gradient_elements,
                                   .on_device = compute.keeps_means(),
                                   .buckets = {.first = 16, .rest = 16},
                                   .buckets_of_rounds = {.first = 16, .rest = 64}},
        [this](int rank, Frame frame) { peers.SendTo(rank, std::move(frame)); }, HeapMemory());
    return &exchanges->Begin(CarrierOfStep(), team,
                             {.membership = view.current().id,
                              .tick = tick,
                              .self = self_rank,
                              .samples = plan.samples});
  }
  StepCarrier CarrierOfStep() const {
    if (team.redo) return StepCarrier::kFrames;
    if (compute.rounds != nullptr) return StepCarrier::kRounds;
    return team.in_sync.size() == 1 ? StepCarrier::kNone : StepCarrier::kFrames;
  }
  void Compute() {
    runner->ComputePart();
    loop.RunFor(seconds(1));
  }
  void ComputeTick(Tick tick) {
    Begin(tick);
    Compute();
  }
  void CommitTicksBefore(Tick tick) {
    for (Tick before = 0; before < tick; ++before) {
      ComputeTick(before);
      Commit();
    }
  }
  // Receives what `from` has sent to it since the last call.
  void Take(TickerOf& from) {
    const std::vector<FakePeerTransport::Sent> sent = from.transport.sent;
    std::erase_if(from.transport.sent,
                  [&](const FakePeerTransport::Sent& one) { return one.to == Ticking(self_rank); });
    for (const FakePeerTransport::Sent& one : sent) {
      if (one.to != Ticking(self_rank)) continue;
      const Status status = runner->OnFrame(from.self_rank, one.frame);
      ASSERT_TRUE(status) << status.error();
    }
  }
  Trailer TrailerTo(int rank) const {
    const std::vector<Frame> frames = transport.SentTo(Ticking(rank), FrameKind::kTrailer);
    EXPECT_EQ(frames.size(), 1U);
    return frames.empty() ? Trailer{} : DecodeTrailer(frames.back().payload.view).value();
  }
  std::vector<float> Gradient() const {
    const MeanGradient mean = runner->mean();
    return {mean.values.view().begin(), mean.values.view().end()};
  }
  void Commit(const std::optional<EvaluationTask>& evaluation = {}) {
    bool committed = false;
    runner->Commit(runner->Outcome(), evaluation,
                   [&](const auto& status) { committed = status.has_value(); });
    EXPECT_TRUE(runner->committing());
    EXPECT_FALSE(runner->complete()) << "it is committed once";
    loop.RunFor(seconds(1));
    EXPECT_TRUE(committed);
    EXPECT_FALSE(runner->committing());
    runner->ForgetPartial();
  }

  SimEventLoop& loop;
  const int self_rank;
  Tasks tasks{loop, [] {}};
  sim::ToyProgram program{kData};
  std::vector<int> computed_shards;  // since the begin of the tick
  sim::SimCompute compute{loop,
                          program,
                          kData.logical_shards,
                          [](std::size_t shards) { return static_cast<int>(shards) * kShardTime; },
                          [this](const ShardTask& task) { computed_shards.push_back(task.shard); },
                          [] {}};
  const Schedule schedule = *Schedule::Make(kData);
  const WorkSplit split{schedule, Reproducibility::kBitwise};
  FakePeerTransport transport;
  MembershipView view;
  Position group;
  LearnerStats stats;
  Peers peers{&transport, view, group, stats};
  Team team;
  Trailer says;
  int times_aborted = 0;
  int times_computed = 0;
  bool not_first = false;  // the ticks that begin are not the first ones of their membership
  std::optional<Error> failed;
  std::string rounds_failed;
  std::vector<std::string> ledger;
  std::optional<GradientExchanges> exchanges;
  std::optional<TickRunner> runner;
};

// The result of a learner that computes alone.
struct Alone {
  std::vector<float> gradient;  // of a step
  ShardSums sums;
};
Alone WhatComesOf(Tick tick) {
  SimEventLoop loop;
  TickerOf alone(loop, 1, 0);
  alone.CommitTicksBefore(tick);
  alone.ComputeTick(tick);
  EXPECT_TRUE(alone.runner->complete());
  const bool step = alone.runner->plan().kind == TickKind::kTrain;
  return {.gradient = step ? alone.Gradient() : std::vector<float>(),
          .sums = alone.runner->Outcome().sums};
}

TEST(TickRunner, AloneItIsCompleteWithItsOwnPart) {
  SimEventLoop loop;
  TickerOf it(loop, 1, 0);
  it.Begin(kFirstStep);
  EXPECT_FALSE(it.runner->complete());
  it.Compute();
  EXPECT_EQ(it.times_computed, 1);
  EXPECT_EQ(it.computed_shards, (std::vector<int>{0, 1, 2, 3}));
  ASSERT_TRUE(it.runner->complete());
  EXPECT_EQ(it.runner->Outcome().sums.samples, 16);
  EXPECT_TRUE(it.transport.sent.empty());
  it.Commit();
  EXPECT_EQ(it.program.steps(), 1U);
  it.ComputeTick(kSecondStep);
  LearnerStats stats;
  it.runner->CountInto(stats);
  EXPECT_EQ(stats.samples, 16U) << "only this tick's samples";
}

// Two ranks whose devices exchange their gradients in rounds; rank 1 begins its part late.
class InRounds : public testing::Test {
 protected:
  static constexpr Duration kLate = milliseconds(400);

  InRounds() {
    for (auto [rank, rounds] : {std::pair(&first_, &of_first_), std::pair(&second_, &of_second_)}) {
      rank->compute.keeps_means_too = rank->not_first = true;
      rank->compute.rounds = rounds;
      rounds->Join({.rank = rank->self_rank, .world_size = 2},
                   [this](const Status& made) { joined_ += made ? 1 : 0; });
    }
    loop_.RunFor(seconds(2));
    EXPECT_EQ(joined_, 2) << "take another seed";
    for (TickerOf* const rank : {&first_, &second_}) rank->Begin(kFirstStep);
    first_.runner->ComputePart();
    loop_.RunFor(kLate);
  }
  void Finish() {
    second_.Compute();
    first_.Take(second_);
    second_.Take(first_);
  }

  SimEventLoop loop_;
  sim::RoundsNetwork network_{loop_, 1, [](const std::string& why) { ADD_FAILURE() << why; }};
  sim::SimRounds of_first_{network_, loop_, "gpu-0"};
  sim::SimRounds of_second_{network_, loop_, "gpu-1"};
  TickerOf first_{loop_, 2, 0};
  TickerOf second_{loop_, 2, 1};
  int joined_ = 0;
};

TEST_F(InRounds, TheOwnPartIsOverBeforeTheExchange) {
  EXPECT_EQ(first_.times_computed, 1);
  EXPECT_EQ(first_.TrailerTo(1).shards.size(), 2U) << "it is sent under the exchange";
  EXPECT_FALSE(first_.runner->complete());
  Finish();
  for (TickerOf* const rank : {&first_, &second_}) {
    ASSERT_TRUE(rank->runner->complete());
    rank->runner->NoteComplete();
    rank->Commit();
    rank->runner->CountInto(rank->stats);
    EXPECT_EQ(rank->stats.steps_in_rounds, 1U);
  }
  EXPECT_EQ(first_.stats.computing, 2 * kShardTime) << "the exchange is no computing";
  EXPECT_GE(first_.stats.waiting, kLate - 2 * kShardTime);
  TickerOf alone(loop_, 1, 0);
  alone.ComputeTick(kFirstStep);
  alone.Commit();
  EXPECT_EQ(first_.program.Hash(), alone.program.Hash());
}

TEST_F(InRounds, TheNodesAreThereAfterAnExchangeThatFails) {
  of_first_.Abort([] {});
  loop_.RunFor(seconds(1));
  EXPECT_EQ(first_.rounds_failed, "aborted");
  EXPECT_FALSE(first_.runner->busy());
  EXPECT_FALSE(first_.runner->complete());
  EXPECT_FALSE(first_.runner->partial().nodes().empty());
  first_.runner->Abort();
  EXPECT_FALSE(first_.runner->aborting()) << "its part is saved already";
}

TEST_F(InRounds, AnAbortDuringTheExchangeSavesTheNodes) {
  first_.runner->Abort();
  EXPECT_TRUE(first_.runner->aborting());
  loop_.RunFor(seconds(1));
  EXPECT_EQ(first_.times_aborted, 1);
  EXPECT_EQ(first_.rounds_failed, "");
  EXPECT_FALSE(first_.runner->partial().nodes().empty());
}

TEST(TickRunner, AloneAStepMayStayOnTheDevice) {
  SimEventLoop loop;
  TickerOf host(loop, 1, 0);
  TickerOf device(loop, 1, 0);
  device.compute.keeps_means_too = device.not_first = true;
  device.Begin(kFirstStep);
  EXPECT_FALSE(device.runner->complete());
  device.Compute();
  ASSERT_TRUE(device.runner->complete());
  EXPECT_TRUE(device.runner->partial().nodes().empty());
  device.Commit();
  host.ComputeTick(kFirstStep);
  host.Commit();
  EXPECT_EQ(device.program.Hash(), host.program.Hash());
}

// Whenever it is aborted, its finished shards serve the next membership.
class AbortedOnTheDevice : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(AfterHalfShards, AbortedOnTheDevice, testing::Values(5, 8, 10));

TEST_P(AbortedOnTheDevice, AStepIsNotComputedAgain) {
  SimEventLoop loop;
  TickerOf first(loop, 1, 0);
  first.compute.keeps_means_too = first.not_first = true;
  first.Begin(kFirstStep);
  first.runner->ComputePart();
  loop.RunFor(kShardTime / 2 * GetParam() + milliseconds(1));
  first.runner->Abort();
  EXPECT_TRUE(first.runner->aborting());
  loop.RunFor(seconds(1));
  EXPECT_FALSE(first.runner->busy());
  EXPECT_EQ(first.times_aborted, 1);
  const std::size_t finished = first.computed_shards.size();
  EXPECT_EQ(finished, GetParam() == 5 ? 3U : 4U);
  const std::vector<NodeIndex> nodes = first.runner->partial().node_indices();
  EXPECT_FALSE(nodes.empty());

  TickerOf second(loop, 2, 1);
  first.Enter({1, 2}, 2);
  second.Enter({1, 2}, 2);
  first.transport.connected.insert(Ticking(1));
  first.not_first = false;
  first.Begin(kFirstStep, {nodes, {}});
  first.Compute();
  second.Begin(kFirstStep, {nodes, {}});
  second.Take(first);
  second.Compute();
  EXPECT_EQ(first.computed_shards.size() + second.computed_shards.size(), 4 - finished);
  first.Take(second);
  second.Take(first);
  first.Take(second);
  ASSERT_TRUE(first.runner->complete());
  EXPECT_EQ(first.Gradient(), WhatComesOf(kFirstStep).gradient);
}

TEST(TickRunner, AStepIsCompleteWithTrailersBuffersAndGradient) {
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  first.ComputeTick(kFirstStep);
  second.ComputeTick(kFirstStep);
  const auto hears = [&](FrameKind kind) {
    for (const Frame& frame : first.transport.SentTo(Ticking(1), kind))
      ASSERT_TRUE(second.runner->OnFrame(0, frame));
  };
  hears(FrameKind::kTrailer);
  EXPECT_FALSE(second.runner->complete());
  hears(FrameKind::kBuffers);
  EXPECT_FALSE(second.runner->complete());
  hears(FrameKind::kNode);
  EXPECT_FALSE(second.runner->complete()) << "the other's pieces are not finished";
  first.Take(second);
  hears(FrameKind::kRoot);
  EXPECT_TRUE(second.runner->complete());
}

TEST(TickRunner, TwoComeToTheSameAsOne) {
  const Alone alone = WhatComesOf(kFirstStep);
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  first.ComputeTick(kFirstStep);
  second.Begin(kFirstStep);
  second.Take(first);  // the other learner may be ahead
  EXPECT_FALSE(first.runner->complete());
  second.Compute();
  first.Take(second);
  second.Take(first);
  first.Take(second);
  for (TickerOf* const it : {&first, &second}) {
    ASSERT_TRUE(it->runner->complete());
    EXPECT_EQ(it->Gradient(), alone.gradient);
    EXPECT_EQ(it->runner->Outcome().sums, alone.sums);
    it->Commit();
  }
  EXPECT_EQ(first.program.Hash(), second.program.Hash()) << "with the buffers of shard 0";
}

// Step 0 is measured.
TEST(TickRunner, TheSpreadOfAMeasuredStepIsTheSameForAnyNumberOfLearners) {
  SimEventLoop loop;
  TickerOf alone(loop, 1, 0);
  alone.ComputeTick(kFirstStep);
  const ShardSpread spread = alone.runner->Outcome().spread;
  EXPECT_EQ(spread.shards, 4);
  EXPECT_GT(spread.sum, 0);
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  first.ComputeTick(kFirstStep);
  second.Begin(kFirstStep);
  second.Take(first);
  second.Compute();
  first.Take(second);
  second.Take(first);
  first.Take(second);
  EXPECT_EQ(first.runner->Outcome().spread, spread);
  EXPECT_EQ(second.runner->Outcome().spread, spread);
  alone.Commit();
  alone.ComputeTick(kSecondStep);
  EXPECT_EQ(alone.runner->Outcome().spread, ShardSpread{}) << "step 1 is not measured";
}

TEST(TickRunner, ItsTrailerHasItsShardsAndWhatTheLearnerSays) {
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  first.says = {.save = true, .may_drain = true, .came_in_sync = {1}};
  first.ComputeTick(kFirstStep);
  const Trailer trailer = first.TrailerTo(1);
  EXPECT_TRUE(trailer.save);
  EXPECT_TRUE(trailer.may_drain);
  EXPECT_EQ(trailer.came_in_sync, std::vector<int>{1});
  EXPECT_FALSE(trailer.state) << "it was not requested";
  ASSERT_EQ(trailer.shards.size(), 2U);
  for (const int shard : {0, 1}) {
    EXPECT_EQ(trailer.shards[static_cast<std::size_t>(shard)].shard, shard);
    EXPECT_EQ(trailer.shards[static_cast<std::size_t>(shard)].sums.samples, 4);
  }
  EXPECT_EQ(first.transport.SentTo(Ticking(1), FrameKind::kBuffers).size(), 1U);

  TickerOf second(loop, 2, 1);
  second.ComputeTick(kFirstStep);
  EXPECT_EQ(second.TrailerTo(0).shards.front().shard, 2);
  EXPECT_TRUE(second.transport.SentTo(Ticking(0), FrameKind::kBuffers).empty())
      << "only the rank that computes shard 0 has them";
}

TEST(TickRunner, StatesAreComparedNowAndThenIfThereIsAnybodyToCompareWith) {
  const struct {
    const char* name;
    std::uint64_t every;
    std::vector<bool> in_sync;
    Tick tick;
    bool want;
    std::uint64_t steps_together = 7;
  } kCases[] = {
      {"never", 0, {true, true}, kSecondStep, false},
      {"at the first step all begin alike", 1, {true, true}, kFirstStep, false},
      {"each step", 1, {true, true}, kSecondStep, true},
      {"each second step", 2, {true, true}, kSecondStep, false},
      {"not in an evaluation", 1, {true, true}, kFirstEvaluation, false},
      {"the other catches up", 1, {true, false}, kSecondStep, false},
      {"before a first step together", 2, {true, true}, kSecondStep, false, 0},
      {"after it", 2, {true, true}, kSecondStep, true, 1},
      {"never, also after it", 0, {true, true}, kSecondStep, false, 1},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    SimEventLoop loop;
    TickerOf it(loop, 2, 0, test.every);
    sim::ToyProgram& program = it.program;
    for (Tick step = 0; step < std::min(test.tick, kFirstEvaluation); ++step) {
      const std::vector<float> gradient(sim::ToyProgram::kParameters, 0.1F);
      const std::vector<std::byte> buffers(program.info().buffer_bytes);
      ASSERT_TRUE(program.Commit(
          {.step = step, .schedule_step = step, .gradient = gradient, .buffers = buffers}));
    }
    it.Begin(test.tick, {}, test.in_sync);
    it.team.steps = test.steps_together;
    it.Compute();
    EXPECT_EQ(it.TrailerTo(1).state.has_value(), test.want);
  }
}

TEST(TickRunner, AnEvaluationHasSumsAndNoGradient) {
  const Alone alone = WhatComesOf(kFirstEvaluation);
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  // Both have the state of a learner that did the two steps alone.
  TickerOf model(loop, 1, 0);
  for (const Tick step : {kFirstStep, kSecondStep}) {
    model.ComputeTick(step);
    model.Commit();
  }
  for (TickerOf* const it : {&first, &second}) {
    ASSERT_TRUE(CopyState(model.program.State(), it->program.State()));
    ASSERT_TRUE(it->program.LoadedState());
    it->ComputeTick(kFirstEvaluation);
    EXPECT_EQ(it->runner->OnFrame(1 - it->self_rank, {.header = {.kind = FrameKind::kNode}})
                  .error()
                  .message,
              "a gradient in an evaluation");
    EXPECT_EQ(it->transport.sent.size(), 1U) << "a trailer, and nothing else";
  }
  first.Take(second);
  second.Take(first);
  for (TickerOf* const it : {&first, &second}) {
    ASSERT_TRUE(it->runner->complete());
    EXPECT_EQ(it->runner->Outcome().sums, alone.sums);
    it->Commit(EvaluationTask{.epoch = 0, .step = 2, .sums = alone.sums});
    EXPECT_EQ(it->program.position(), (std::pair<std::int64_t, std::int64_t>(2, 1)));
    LearnerStats stats;
    it->runner->CountInto(stats);
    EXPECT_EQ(stats.ticks, 1U);
    EXPECT_EQ(stats.shards, 2U);
    EXPECT_EQ(stats.steps, 0U);
    EXPECT_EQ(stats.samples, 0U);
    EXPECT_TRUE(it->ledger.empty()) << "only training is recorded";
  }
}

// ---- A tick that is aborted ----

TEST(TickRunner, KeepsFinishedPartsOfAnAbortedTick) {
  for (const Tick tick : {kFirstStep, kFirstEvaluation}) {
    SCOPED_TRACE(tick);
    const Alone alone = WhatComesOf(tick);
    SimEventLoop loop;
    TickerOf it(loop, 1, 0);
    it.CommitTicksBefore(tick);
    it.Begin(tick);
    it.runner->ComputePart();
    loop.RunFor(2 * kShardTime + kShardTime / 2);
    it.runner->Abort();
    it.runner->Abort();
    EXPECT_TRUE(it.runner->aborting());
    EXPECT_EQ(it.times_aborted, 0) << "a shard is being computed";
    loop.RunFor(seconds(1));
    EXPECT_EQ(it.times_aborted, 1) << "once";
    EXPECT_FALSE(it.runner->aborting());
    EXPECT_EQ(it.computed_shards, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(it.times_computed, 0) << "it reports nothing about an aborted tick";

    it.Enter({1, 2}, 1);
    it.Begin(tick, {it.runner->partial().node_indices()});
    it.Compute();
    EXPECT_EQ(it.computed_shards, std::vector<int>{3});
    ASSERT_TRUE(it.runner->complete());
    EXPECT_EQ(it.runner->Outcome().sums, alone.sums);
    if (tick == kFirstStep) {
      EXPECT_EQ(it.Gradient(), alone.gradient);
      EXPECT_EQ(it.ledger.back(), "1.2 tick 0: 0 1 2 3")
          << "it contributes all of them to the tick";
    }
    LearnerStats stats;
    it.runner->CountInto(stats);
    EXPECT_EQ(stats.shards, 4U);
    EXPECT_EQ(stats.shards_kept, 3U);
  }
}

TEST(TickRunner, PartsThatTwoHaveFinishedAreNotComputedAgain) {
  const Alone alone = WhatComesOf(kFirstStep);
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  first.Begin(kFirstStep);
  second.ComputeTick(kFirstStep);
  first.runner->ComputePart();
  loop.RunFor(kShardTime / 2);
  first.runner->Abort();
  loop.RunFor(seconds(1));
  second.runner->Abort();
  loop.RunFor(seconds(1));
  EXPECT_EQ(second.times_aborted, 0) << "nothing is computed: there is nothing to wait for";

  const std::vector<std::vector<NodeIndex>> finished{first.runner->partial().node_indices(),
                                                     second.runner->partial().node_indices()};
  for (TickerOf* const it : {&first, &second}) {
    it->transport.sent.clear();
    it->Enter({1, 2}, 2);
    it->Begin(kFirstStep, finished);
  }
  first.Compute();
  second.Compute();
  EXPECT_EQ(first.computed_shards.size() + second.computed_shards.size(), 1U);
  EXPECT_EQ(second.times_computed, 1) << "even with nothing to compute";
  for (int i = 0; i < 2; ++i) {
    first.Take(second);
    second.Take(first);
  }
  for (TickerOf* const it : {&first, &second}) {
    ASSERT_TRUE(it->runner->complete());
    EXPECT_EQ(it->Gradient(), alone.gradient);
    EXPECT_EQ(it->runner->Outcome().sums, alone.sums);
    it->Commit();
  }
  EXPECT_EQ(first.program.Hash(), second.program.Hash());
}

TEST(TickRunner, KeepsNothingOfAnotherState) {
  SimEventLoop loop;
  TickerOf it(loop, 1, 0);
  it.Begin(kFirstStep);
  it.runner->ComputePart();
  loop.RunFor(kShardTime + kShardTime / 2);
  it.runner->Abort();
  loop.RunFor(seconds(1));
  EXPECT_FALSE(it.runner->partial().nodes().empty());
  it.runner->ForgetPartial();
  EXPECT_TRUE(it.runner->partial().nodes().empty());
  it.ComputeTick(kFirstStep);
  EXPECT_EQ(it.computed_shards.size(), 4U);
}

// ---- Frames from others ----

TEST(TickRunner, TakesNothingThatARankHasNotToSend) {
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  second.ComputeTick(kFirstStep);
  first.Begin(kFirstStep);
  const Frame trailer = second.transport.SentTo(Ticking(0), FrameKind::kTrailer).front();
  Frame node = second.transport.SentTo(Ticking(0), FrameKind::kNode).front();
  EXPECT_FALSE(first.runner->OnFrame(
      1, {.header = {.kind = FrameKind::kTrailer}, .payload = TextPayload("no trailer")}));
  EXPECT_FALSE(first.runner->OnFrame(1, {.header = {.kind = FrameKind::kBuffers}, .payload = {}}))
      << "it does not own shard 0";
  EXPECT_TRUE(first.runner->OnFrame(1, trailer));
  EXPECT_FALSE(first.runner->OnFrame(1, trailer)) << "twice";
  EXPECT_TRUE(first.runner->OnFrame(1, node));
  EXPECT_FALSE(first.runner->OnFrame(1, node)) << "twice";
  ++node.header.tick;
  EXPECT_FALSE(first.runner->OnFrame(1, node)) << "the frame of another tick";
}

TEST(TickRunner, WritesAResultFromElsewhereToItsPlace) {
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  first.ComputeTick(kFirstStep);
  second.ComputeTick(kFirstStep);
  second.Take(first);
  const Frame root = second.transport.SentTo(Ticking(0), FrameKind::kRoot).front();
  const std::size_t bytes = root.payload.view.size();
  EXPECT_EQ(first.runner->ReceiveBufferFor(1, root.header, bytes).view.size(), bytes);
  EXPECT_EQ(first.runner->ReceiveBufferFor(1, root.header, bytes + 64).view.size(), 0U);
  first.Begin(kFirstEvaluation);
  EXPECT_EQ(first.runner->ReceiveBufferFor(1, root.header, bytes).view.size(), 0U)
      << "an evaluation has no place for it";
}

TEST(TickRunner, TellsOfAProgramThatFails) {
  SimEventLoop loop;
  TickerOf it(loop, 1, 0);
  FakeCompute compute(loop);
  compute.fault = Error{ErrorCode::kInternal, "no such sample"};
  TickRunner runner(
      0,
      {.tasks = it.tasks, .compute = compute, .split = it.split, .peers = it.peers, .aborted = [] {
       }});
  it.Begin(kFirstStep);
  runner.Begin({.membership = {1, 1},
                .number = kFirstStep,
                .plan = it.schedule.At(kFirstStep),
                .self = 0,
                .team = &it.team,
                .exchange = it.ExchangeOf(kFirstStep),
                .owner = &it});
  runner.ComputePart();
  loop.RunFor(seconds(1));
  ASSERT_TRUE(it.failed);
  EXPECT_EQ(it.failed->message, "no such sample");
  EXPECT_EQ(it.times_computed, 0);
  EXPECT_FALSE(runner.complete());
}

TEST(TickRunner, ACommitDoesNotNeedTheRunner) {
  SimEventLoop loop;
  TickerOf stays(loop, 1, 0);
  TickerOf goes(loop, 1, 0);
  stays.ComputeTick(kFirstStep);
  stays.Commit();
  goes.ComputeTick(kFirstStep);
  goes.runner->Commit(goes.runner->Outcome(), {}, [](const auto&) { ADD_FAILURE(); });
  goes.tasks.End();
  goes.runner.reset();
  loop.RunFor(seconds(1));
  EXPECT_EQ(goes.program.Hash(), stays.program.Hash());
}

TEST(TickRunner, CountsWholeTicks) {
  SimEventLoop loop;
  TickerOf first(loop, 2, 0);
  TickerOf second(loop, 2, 1);
  second.ComputeTick(kFirstStep);
  first.Begin(kFirstStep);
  first.runner->ComputePart();
  EXPECT_TRUE(loop.RunUntilTrue([&] { return first.times_computed == 1; }, seconds(1)));
  loop.RunFor(milliseconds(100));
  first.Take(second);
  second.Take(first);
  first.Take(second);
  ASSERT_TRUE(first.runner->complete());
  first.runner->NoteComplete();
  first.runner->Commit(first.runner->Outcome(), {}, [](const auto&) {});
  loop.RunFor(milliseconds(5));
  LearnerStats stats;
  first.runner->CountInto(stats);
  first.runner->CountInto(stats);  // as from a second runner
  EXPECT_EQ(stats.ticks, 2U);
  EXPECT_EQ(stats.steps, 2U);
  EXPECT_EQ(stats.shards, 4U);
  EXPECT_EQ(stats.samples, 16U);
  EXPECT_EQ(stats.shards_kept, 0U);
  EXPECT_NEAR(ToSeconds(stats.computing), 4 * ToSeconds(kShardTime), 1e-6);
  EXPECT_EQ(stats.waiting, 2 * milliseconds(100));
  EXPECT_EQ(stats.committing, 2 * milliseconds(5));
}

}  // namespace
}  // namespace pliant
