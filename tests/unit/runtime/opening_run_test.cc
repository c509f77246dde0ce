#include "trainer/runtime/opening_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/sim_event_loop.h"
#include "tests/unit/protocol/state_frames.h"
#include "tests/unit/runtime/fake_checkpointer.h"
#include "tests/unit/runtime/fake_compute.h"
#include "tests/unit/runtime/fake_peer_transport.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Lines = std::vector<std::string>;

constexpr Duration kOpeningTimeout = seconds(20);
constexpr MembershipId kOpens{3, 1};

// Every tick is an optimizer step.
Schedule ScheduleOfSteps() {
  return *Schedule::Make({.train_samples = 64,
                          .test_samples = 0,
                          .epochs = 5,
                          .global_batch_size = 16,
                          .logical_shards = 8,
                          .seed = 1,
                          .max_doublings = 1});
}
StateSummary ByBoundary(Tick ticks) {
  return {.position = {.has_state = true, .applied_ticks = ticks}, .current = true};
}
StateSummary AfterCrash(Tick ticks) {
  return {.position = {.has_state = true, .applied_ticks = ticks}};
}

// Rank `self` among `ranks`, with an owner that carries moves out after the call has returned, as
// the learner does.
struct OpeningOf final : OpeningRun::Owner, CoordinatorSession::Owner, MetricsSink {
  OpeningOf(int world_size, int self, const StateSummary& own, bool bitwise = true)
      : self_id{IdOfRank(self)} {
    Membership membership{.id = kOpens, .members = {}};
    for (int rank = 0; rank < world_size; ++rank)
      membership.members.push_back({.id = IdOfRank(rank), .address = "x:1"});
    view.Enter(std::move(membership), {});
    run.emplace(OpeningRun::Options{.membership = kOpens,
                                    .world_size = world_size,
                                    .self = self,
                                    .job = {},
                                    .bitwise = bitwise,
                                    .timeout = kOpeningTimeout},
                LearnerContext{.tasks = tasks,
                               .moves = moves,
                               .compute = compute,
                               .checkpointer = checkpointer,
                               .metrics = *this,
                               .split = split,
                               .view = view,
                               .peers = peers,
                               .states = states,
                               .session = session,
                               .volume_retry = volume_retry,
                               .stats = stats,
                               .state = state},
                *this, own);
  }

  void Fail(const Error& error) override { told.push_back("failed: " + error.message); }
  void LoadState(std::shared_ptr<const StateCopy> given, StateSummary holding) override {
    told.push_back(Format("load {}", holding.position.applied_ticks));
    loading = true;
    compute.LoadState(std::move(given), tasks.Guard<Status>([this, holding](const Status& status) {
      ASSERT_TRUE(status);
      loading = false;
      run->OnLoaded(holding);
    }));
  }

  std::vector<LearnerMessage> Greeting() override { return {}; }
  Progress MakeProgress() override { return {}; }
  void Obey(const CoordinatorMessage& /*message*/) override {}
  void Append(Tick /*tick*/, std::string_view /*line*/) override {}
  void CutFrom(Tick /*tick*/) override {}

  static LearnerId IdOfRank(int rank) {
    return {.name = "learner-" + std::to_string(rank), .pod_uid = "u", .nonce = 1};
  }
  void CarryOut() {
    if (state.own.has_state && !std::exchange(has_state, true)) told.emplace_back("fresh start");
    std::deque<Move> all;
    moves.PutBefore(all);
    for (const Move& move : all) {
      if (const auto* const simple = std::get_if<SimpleMove>(&move)) {
        ready |= *simple == SimpleMove::kBeginTraining;
        news |= *simple == SimpleMove::kAdvanceOpening;
        continue;
      }
      const Loss& loss = std::get<StopMove>(move).loss;
      for (const LearnerId& accused : loss.accused)
        told.push_back(Format("{}: {}", accused.name, loss.cause));
    }
    if (loading || !std::exchange(news, false)) return;
    run->Advance();
    CarryOut();
  }
  // A membership in which all are connected.
  void BeginConnected() {
    for (int rank = 0; rank < view.current().world_size(); ++rank) {
      if (!view.IsSelf(view.member(rank))) transport.connected.insert(IdOfRank(rank));
    }
    run->Begin();
    news = true;
    CarryOut();
  }
  void Hears(int rank, const StateSummary& holding) {
    ASSERT_TRUE(run->OnOpenFrame(
        rank, {.header = {.kind = FrameKind::kOpen}, .payload = EncodeStateSummary(holding)}));
    CarryOut();
  }
  void HearsReady(int rank) {
    run->OnOpenedFrame(rank);
    CarryOut();
  }
  void Connects(int rank) {
    transport.connected.insert(IdOfRank(rank));
    run->OnConnected(rank);
    CarryOut();
  }
  std::vector<Frame> SentTo(int rank, FrameKind kind) const {
    return transport.SentTo(IdOfRank(rank), kind);
  }
  // The state summary that this rank sent last.
  StateSummary SaidTo(int rank) const {
    const std::vector<Frame> frames = SentTo(rank, FrameKind::kOpen);
    if (frames.empty()) return {};
    return DecodeStateSummary(frames.back().payload.view, schedule, true).value();
  }
  // The state of another rank, with tensors filled with `value`.
  std::vector<Frame> StateFrames(Tick applied, float value = 0.5F) const {
    auto filled = std::make_shared<StateCopy>(StateCopy::Like(compute.state_shape()));
    for (const TensorView& tensor : filled->view()) {
      for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(value))
        std::memcpy(&tensor.bytes[at], &value, sizeof(value));
    }
    return pliant::StateFrames(kOpens, applied, std::move(filled));
  }
  void HearsState(int rank, const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) run->OnStateFrame(rank, frame);
    CarryOut();
  }

  const LearnerId self_id;
  SimEventLoop loop;
  Tasks tasks{loop, [this] { CarryOut(); }};
  FakeCompute compute{loop};
  FakeCheckpointer checkpointer{loop};
  FakePeerTransport transport;
  const Schedule schedule = ScheduleOfSteps();
  const WorkSplit split{schedule, Reproducibility::kBitwise};
  TrainingState state{schedule};
  MembershipView view{self_id};
  LearnerStats stats;
  Peers peers{&transport, view, state.group, stats};
  CoordinatorSession session{nullptr, tasks, 0, *this};
  Moves moves;
  StateServer states{1U << 20,
                     [this](int rank, Frame frame) { peers.SendTo(rank, std::move(frame)); }};
  VolumeRetry volume_retry;
  Lines told;
  bool ready = false;
  bool news = false;
  bool loading = false;
  bool has_state = false;
  std::optional<OpeningRun> run;
};

// ---- State summaries ----

TEST(OpeningRun, BeginsWhenAllHoldTheStateAndSaidSo) {
  OpeningOf it(2, 1, ByBoundary(6));
  it.BeginConnected();
  EXPECT_EQ(it.SaidTo(0), ByBoundary(6));
  it.Hears(0, ByBoundary(6));
  EXPECT_EQ(it.SentTo(0, FrameKind::kOpened).size(), 1U);
  EXPECT_FALSE(it.ready);
  it.HearsReady(0);
  EXPECT_TRUE(it.ready);
  EXPECT_EQ(it.SentTo(0, FrameKind::kOpened).size(), 1U) << "once";
  EXPECT_EQ(it.told, Lines{});
  EXPECT_EQ(it.checkpointer.asked, Lines{}) << "after a boundary no rank reads the volume";
}

TEST(OpeningRun, AFrameThatDoesNotSayWhatAMemberHoldsIsInvalid) {
  OpeningOf it(2, 1, ByBoundary(6));
  EXPECT_FALSE(it.run->OnOpenFrame(0, {.header = {.kind = FrameKind::kOpen}, .payload = {}}));
  EXPECT_FALSE(it.run->OnOpenFrame(
      0, {.header = {.kind = FrameKind::kOpen}, .payload = EncodeStateSummary(AfterCrash(21))}))
      << "a tick beyond the end of the job";
}

// ---- Connections ----

TEST(OpeningRun, WaitsForAllConnectionsEvenWhenAllAreReady) {
  OpeningOf it(3, 1, ByBoundary(6));
  it.transport.connected = {it.IdOfRank(0)};
  it.run->Begin();
  for (const int rank : {0, 2}) {
    it.Hears(rank, ByBoundary(6));
    it.HearsReady(rank);
  }
  EXPECT_FALSE(it.ready);
  it.Connects(2);
  EXPECT_TRUE(it.ready);
  EXPECT_EQ(it.SaidTo(2), ByBoundary(6));
  EXPECT_EQ(it.SentTo(2, FrameKind::kOpened).size(), 1U) << "the earlier message did not arrive";
}

TEST(OpeningRun, TellsOfMembersThatDoNotComeInTime) {
  OpeningOf it(4, 1, ByBoundary(6));
  it.transport.connected = {it.IdOfRank(0)};
  it.run->Begin();
  it.loop.RunFor(kOpeningTimeout / 2);
  it.Connects(3);
  it.loop.RunFor(kOpeningTimeout / 2 - milliseconds(1));
  EXPECT_EQ(it.told, Lines{});
  it.loop.RunFor(milliseconds(300));
  EXPECT_EQ(it.told, Lines{"learner-2: no connection"});
  EXPECT_EQ(it.loop.pending(), 0U) << "it is not sent again";
}

TEST(OpeningRun, ALinkThatBreaksIsGivenLessTimeThanANewOne) {
  OpeningOf it(2, 1, ByBoundary(6));
  it.BeginConnected();
  it.loop.RunFor(seconds(5));
  EXPECT_TRUE(it.run->OnLost(0));
  it.loop.RunFor(milliseconds(900));
  EXPECT_EQ(it.told, Lines{});
  it.loop.RunFor(milliseconds(400));
  EXPECT_EQ(it.told, Lines{"learner-0: no connection"});
}

TEST(OpeningRun, ALinkThatIsMadeAgainInTimeIsAllRight) {
  OpeningOf it(2, 1, ByBoundary(6));
  it.BeginConnected();
  EXPECT_TRUE(it.run->OnLost(0));
  it.loop.RunFor(milliseconds(500));
  const std::size_t said = it.SentTo(0, FrameKind::kOpen).size();
  it.Connects(0);
  EXPECT_EQ(it.SentTo(0, FrameKind::kOpen).size(), said + 1) << "it may not have arrived";
  it.loop.RunFor(kOpeningTimeout * 2);
  EXPECT_EQ(it.told, Lines{});
}

TEST(OpeningRun, AbandonsALinkThatBreaksAgainAndAgain) {
  OpeningOf it(2, 1, ByBoundary(6));
  it.BeginConnected();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(it.run->OnLost(0));
    it.Connects(0);
  }
  EXPECT_FALSE(it.run->OnLost(0));
}

// ---- A state from another member ----

TEST(OpeningRun, RankZeroTakesTheFurthestState) {
  OpeningOf it(3, 0, AfterCrash(4));
  it.BeginConnected();
  it.Hears(1, ByBoundary(5));
  it.Hears(2, ByBoundary(6));
  EXPECT_EQ(it.SentTo(2, FrameKind::kStateRequest).size(), 1U);
  EXPECT_EQ(it.SentTo(1, FrameKind::kStateRequest).size(), 0U);
  it.HearsState(1, it.StateFrames(5, 0.25F));
  EXPECT_EQ(it.told, Lines{}) << "rank 1 was not asked";
  it.HearsState(2, it.StateFrames(6));
  EXPECT_EQ(it.told, Lines{"load 6"});
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.compute.weights.front(), 0.5F);
  EXPECT_EQ(it.SaidTo(1).position.applied_ticks, 6U) << "the others are informed";
  EXPECT_EQ(it.SaidTo(2).position.applied_ticks, 6U);
  EXPECT_EQ(it.SentTo(2, FrameKind::kStateRequest).size(), 1U);
  EXPECT_EQ(it.SentTo(1, FrameKind::kOpened).size(), 1U);
}

TEST(OpeningRun, OthersThanRankZeroTakeNoStateBeforeTicksBegin) {
  OpeningOf it(2, 1, AfterCrash(4));
  it.BeginConnected();
  it.Hears(0, ByBoundary(6));
  EXPECT_TRUE(it.SentTo(0, FrameKind::kStateRequest).empty());
  EXPECT_EQ(it.SentTo(0, FrameKind::kOpened).size(), 1U);
}

TEST(OpeningRun, AsksForTheNextBatchOfAState) {
  OpeningOf it(2, 0, AfterCrash(4));
  it.BeginConnected();
  it.Hears(1, ByBoundary(6));
  StateSender sender(kOpens, 6,
                     std::make_shared<const StateCopy>(StateCopy::Of(it.compute.state_shape())));
  std::size_t requests = 1;
  for (; !sender.done(); ++requests) {
    EXPECT_EQ(it.SentTo(1, FrameKind::kStateRequest).size(), requests);
    sender.SendBatch(16, [&](const Frame& frame) { it.run->OnStateFrame(1, frame); });
  }
  const std::vector<Frame> sent = it.SentTo(1, FrameKind::kStateRequest);
  EXPECT_EQ(sent.size(), requests - 1) << "not after the last one";
  EXPECT_EQ(sent[0].header.node, 0U) << "from its beginning";
  EXPECT_EQ(sent[1].header.node, kLastOfBatch) << "continues where it stopped";
  EXPECT_EQ(it.told, Lines{"load 6"});
}

TEST(OpeningRun, BeginsAStateAgainOnANewConnection) {
  OpeningOf it(2, 0, AfterCrash(4));
  it.BeginConnected();
  it.Hears(1, ByBoundary(6));
  const std::vector<Frame> first = it.StateFrames(6, 0.25F);
  ASSERT_GE(first.size(), 3U);
  it.run->OnStateFrame(1, first[0]);
  EXPECT_TRUE(it.run->OnLost(1));
  it.Connects(1);
  EXPECT_EQ(it.SentTo(1, FrameKind::kStateRequest).size(), 2U);
  it.run->OnStateFrame(1, first[1]);  // the rest of the first answer is ignored
  it.HearsState(1, it.StateFrames(6));
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.told, Lines{"load 6"});
  EXPECT_EQ(it.compute.weights.front(), 0.5F);
}

TEST(OpeningRun, AStateThatCannotBeIsAViolation) {
  const struct {
    const char* name;
    std::function<std::vector<Frame>(const OpeningOf&)> frames;
    std::string want;
  } kCases[] = {
      {"it does not fit",
       [](const OpeningOf& it) {
         auto frames = it.StateFrames(6);
         frames.erase(frames.begin() + 1);
         frames.resize(2);
         return frames;
       },
       "learner-1: a piece of another tensor"},
      {"of another tick", [](const OpeningOf& it) { return it.StateFrames(7); },
       "learner-1: a state of another tick than it said"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    OpeningOf it(2, 0, AfterCrash(4));
    it.BeginConnected();
    it.Hears(1, ByBoundary(6));
    it.HearsState(1, test.frames(it));
    EXPECT_EQ(it.told, Lines{test.want});
  }
}

TEST(OpeningRun, SendsItsOwnStateToWhoAsks) {
  OpeningOf it(2, 1, ByBoundary(6));
  it.BeginConnected();
  it.run->ServeState(0, /*has_state=*/false, 6);
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.compute.asked, Lines{}) << "it has no state";
  it.run->ServeState(0, /*has_state=*/true, 6);
  it.loop.RunFor(seconds(1));
  const std::vector<Frame> frames = it.SentTo(0, FrameKind::kState);
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames.back().header.tick, 6U);
  EXPECT_EQ(frames.back().header.membership, kOpens);

  it.compute.fault = Error{ErrorCode::kInternal, "out of memory"};
  it.run->ServeState(0, /*has_state=*/true, 6);
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.told, Lines{"failed: out of memory"});
}

// ---- The volume ----

StoredCheckpoint CheckpointOfStep(std::uint64_t step) {
  return {.name = "step", .step = step, .tick = step};
}

TEST(OpeningRun, RankZeroBeginsFromTheNewestCheckpointUnlessAMemberIsAsFar) {
  const std::optional<Tick> kNobody;
  const std::optional<std::uint64_t> kNone;
  const auto none = [](OpeningOf&) -> Result<Restored> {
    return Fail(ErrorCode::kNotFound, "there is none");
  };
  const auto corrupt = [](OpeningOf&) -> Result<Restored> {
    return Fail(ErrorCode::kCorrupt, "step-5: crc32c");
  };
  const auto of = [](std::uint64_t step, Tick tick, const BatchSegments& batches = {}) {
    return [=](OpeningOf& it) -> Result<Restored> {
      return Restored{.manifest = {.position = {.step = step,
                                                .tick = tick,
                                                .membership = {2, 2},
                                                .batches = batches}},
                      .state = StateCopy::Like(it.compute.state_shape()),
                      .passed_over = {}};
    };
  };
  const std::string other = "the checkpoint of step 8 is of a job with other data or epochs";
  const Lines kReads{"find newest", "restore"};
  const Lines kLooks{"find newest"};
  const struct {
    const char* name;
    std::optional<Tick> held;  // state of the other member
    std::optional<std::uint64_t> newest;
    std::function<Result<Restored>(OpeningOf&)> restored;
    Lines asked;
    Lines told;
    std::optional<Tick> begins;  // the tick from which rank 0 then lets the membership begin
  } kCases[] = {
      {"there is nothing",
       kNobody,
       kNone,
       none,
       {"find newest", "restore first"},
       {"fresh start"},
       0},
      {"another job's", kNobody, kNone, of(0, 0), {"find newest", "restore first"}, {"load 0"}, 0},
      {"a checkpoint", kNobody, 5, of(5, 5), kReads, {"load 5"}, 5},
      {"one that is ahead", 4, 5, of(5, 5), kReads, {"load 5"}, 5},
      {"one that is as far", 5, 5, of(5, 5), kLooks, {}, std::nullopt},
      {"one that is behind", 6, 5, of(5, 5), kLooks, {}, std::nullopt},
      {"none, but a member's state", 6, kNone, none, kLooks, {}, std::nullopt},
      {"the newest does not verify, one that is behind does",
       6,
       9,
       of(5, 5),
       kReads,
       {},
       std::nullopt},
      {"none verifies, but a member's state is there", 6, 9, corrupt, kReads, {}, std::nullopt},
      {"none verifies", kNobody, 9, corrupt, kReads, {"failed: step-5: crc32c"}, std::nullopt},
      {"of other data", kNobody, 8, of(8, 9), kReads, {"failed: " + other}, std::nullopt},
      {"of more epochs", kNobody, 8, of(8, 21), kReads, {"failed: " + other}, std::nullopt},
      {"whose batch grows now", kNobody, 4, of(4, 4, {{1, 1}}), kReads, {"load 4"}, 4},
      {"whose batch grew", kNobody, 5, of(5, 5, {{1, 1}}), kReads, {"load 5"}, 5},
      {"whose batch grows in the future",
       kNobody,
       3,
       of(3, 3, {{4, 1}}),
       kReads,
       {"failed: the checkpoint of step 3 has a batch of an epoch that it has not reached"},
       std::nullopt},
      {"whose batch grew more than this job's may",
       kNobody,
       7,
       of(7, 7, {{1, 1}, {2, 2}}),
       kReads,
       {"failed: the checkpoint of step 7 is of a job whose batch was doubled 2 times, and this "
        "job's maxBatchSize allows 1: use a larger one"},
       std::nullopt},
      {"of other data, ahead of a member's state",
       6,
       8,
       of(8, 9),
       kReads,
       {"failed: " + other},
       std::nullopt},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    OpeningOf it(2, 0, {});
    const auto restored = [&] { return test.restored(it); };
    it.checkpointer.restored = it.checkpointer.first = restored;
    if (test.newest) it.checkpointer.newest = [&] { return CheckpointOfStep(*test.newest); };
    it.BeginConnected();
    EXPECT_EQ(it.checkpointer.asked, Lines{}) << "not before it knows the others' states";
    const StateSummary held = test.held ? AfterCrash(*test.held) : StateSummary{};
    it.Hears(1, held);
    it.Hears(1, held);  // repeated: this rank still looks only once
    it.loop.RunFor(seconds(1));
    EXPECT_EQ(it.checkpointer.asked, test.asked);
    EXPECT_EQ(it.told, test.told);
    const bool failed = !test.told.empty() && test.told.front().starts_with("failed");
    const StateSummary said = it.SaidTo(1);
    EXPECT_EQ(said.current, !failed) << "all learn that no checkpoint is ahead";
    EXPECT_EQ(said.position.has_state, test.begins.has_value());
    EXPECT_EQ(said.position.applied_ticks, test.begins.value_or(0));
    const bool fetches = !failed && !test.begins;
    EXPECT_EQ(it.SentTo(1, FrameKind::kStateRequest).size(), fetches ? 1U : 0U);
  }
}

TEST(OpeningRun, ACheckpointContinuesWithMoreStepsButNotWithFewer) {
  for (const std::uint64_t steps : {9U, 4U}) {
    OpeningOf it(2, 0, {});
    DataSpec spec = ScheduleOfSteps().spec();
    spec.epochs = 0;
    spec.max_steps = steps;
    it.state.schedule = *Schedule::Make(spec);
    it.checkpointer.newest = [] { return CheckpointOfStep(5); };
    it.checkpointer.restored = [&] {
      return Restored{.manifest = {.position = {.step = 5, .tick = 5, .membership = {2, 2}}},
                      .state = StateCopy::Like(it.compute.state_shape()),
                      .passed_over = {}};
    };
    it.BeginConnected();
    it.Hears(1, {});
    it.loop.RunFor(seconds(1));
    const std::string refused =
        "failed: the checkpoint of step 5 has more steps than maxSteps (4): use at least 5";
    EXPECT_EQ(it.told, Lines{steps == 9 ? "load 5" : refused});
  }
}

TEST(OpeningRun, OnlyRankZeroLooksAtTheVolume) {
  OpeningOf it(2, 1, AfterCrash(4));
  it.BeginConnected();
  it.Hears(0, AfterCrash(4));
  EXPECT_EQ(it.checkpointer.asked, Lines{});
}

TEST(OpeningRun, InStatisticalModeAStateIsOfTheMembershipThatWroteIt) {
  for (const bool bitwise : {true, false}) {
    SCOPED_TRACE(bitwise);
    OpeningOf it(2, 0, {}, bitwise);
    it.checkpointer.newest = [] { return CheckpointOfStep(5); };
    it.checkpointer.restored = [&] {
      return Restored{.manifest = {.position = {.step = 5, .tick = 5, .membership = {2, 2}}},
                      .state = StateCopy::Like(it.compute.state_shape()),
                      .passed_over = {"step-6: crc32c"}};
    };
    it.BeginConnected();
    it.Hears(1, {});
    it.loop.RunFor(seconds(1));
    EXPECT_EQ(it.SaidTo(1).position.lineage, bitwise ? MembershipId{} : (MembershipId{2, 2}));
    const Frame nodes{
        .header = {.kind = FrameKind::kOpen},
        .payload = EncodeStateSummary({.position = {.has_state = true}, .finished = {9}})};
    EXPECT_EQ(it.run->OnOpenFrame(1, nodes).has_value(), bitwise)
        << "another number of ranks splits a tick differently";
  }
}

TEST(OpeningRun, MembersWithAStateDoNotStandStillForAVolumeThatHangs) {
  OpeningOf it(2, 0, AfterCrash(6));
  it.checkpointer.time = seconds(30);
  it.checkpointer.newest = [] { return CheckpointOfStep(9); };
  it.BeginConnected();
  it.Hears(1, AfterCrash(6));
  it.loop.RunFor(milliseconds(2900));
  EXPECT_FALSE(it.SaidTo(1).current);
  it.loop.RunFor(milliseconds(200));
  EXPECT_TRUE(it.SaidTo(1).current);
  EXPECT_EQ(it.SentTo(1, FrameKind::kOpened).size(), 1U);
  it.loop.RunFor(seconds(60));
  EXPECT_EQ(it.checkpointer.asked, Lines{"find newest"}) << "the answer came after the decision";
  EXPECT_EQ(it.told, Lines{});
}

TEST(OpeningRun, WithoutAStateThereIsNothingElseToWaitFor) {
  OpeningOf it(2, 0, {});
  it.checkpointer.time = seconds(30);
  it.checkpointer.newest = [] { return CheckpointOfStep(5); };
  it.BeginConnected();
  it.Hears(1, {});
  it.loop.RunFor(seconds(19));
  EXPECT_FALSE(it.SaidTo(1).current);
  EXPECT_EQ(it.checkpointer.asked.size(), 1U);
  it.loop.RunFor(seconds(12));
  EXPECT_EQ(it.checkpointer.asked, (Lines{"find newest", "restore"}));
}

TEST(OpeningRun, WithAStateAVolumeThatFailsIsTriedAgainAndThenPassedOver) {
  struct Case {
    std::string name;
    int looks_fail = 0;  // number of consecutive failures
    int reads_fail = 0;
    ErrorCode code = ErrorCode::kUnavailable;
    int looks = 0;  // expected number of looks
    int reads = 0;
    Duration decided_after{};  // with a tolerance of 0.1 s
    Lines told;
  };
  constexpr int kForever = 1000;
  const Case kCases[] = {
      {"one look fails", 1, 0, ErrorCode::kUnavailable, 2, 1, seconds(1), {"load 9"}},
      {"no look may be had", kForever, 0, ErrorCode::kDenied, 1, 0, seconds(0), {}},
      {"looks fail for long", 5, 0, ErrorCode::kUnavailable, 3, 0, seconds(3), {}},
      {"one read fails", 0, 1, ErrorCode::kUnavailable, 2, 2, seconds(1), {"load 9"}},
      {"nine reads fail", 0, 9, ErrorCode::kUnavailable, 10, 10, seconds(9), {"load 9"}},
      {"all reads fail", 0, kForever, ErrorCode::kUnavailable, 10, 10, seconds(9), {}},
      {"it does not verify", 0, kForever, ErrorCode::kCorrupt, 1, 1, seconds(0), {}},
  };
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.name);
    OpeningOf it(2, 0, AfterCrash(6));
    it.checkpointer.newest = [&, left = test.looks_fail]() mutable -> Result<StoredCheckpoint> {
      if (left-- > 0) return Fail(test.code, "stale handle");
      return CheckpointOfStep(9);
    };
    it.checkpointer.restored = [&, left = test.reads_fail]() mutable -> Result<Restored> {
      if (left-- > 0) return Fail(test.code, "stale handle");
      return Restored{.manifest = {.position = {.step = 9, .tick = 9}},
                      .state = StateCopy::Like(it.compute.state_shape()),
                      .passed_over = {}};
    };
    it.BeginConnected();
    it.Hears(1, AfterCrash(6));
    it.loop.RunFor(test.decided_after - milliseconds(1));
    EXPECT_FALSE(it.SaidTo(1).current);
    it.loop.RunFor(milliseconds(500));
    EXPECT_TRUE(it.SaidTo(1).current);
    EXPECT_EQ(it.SaidTo(1).position.applied_ticks, test.told.empty() ? 6U : 9U);
    it.loop.RunFor(seconds(60));
    EXPECT_EQ(std::ranges::count(it.checkpointer.asked, "find newest"), test.looks);
    EXPECT_EQ(std::ranges::count(it.checkpointer.asked, "restore"), test.reads);
    EXPECT_EQ(it.told, test.told);
    EXPECT_TRUE(it.volume_retry.OnFailed()) << "the next opening has the same number of tries";
  }
}

TEST(OpeningRun, AVolumeThatAnswersHasNotFailedInARow) {
  OpeningOf it(2, 0, AfterCrash(6));
  while (it.volume_retry.OnFailed()) {
  }
  it.checkpointer.newest = [] { return CheckpointOfStep(3); };
  it.BeginConnected();
  it.Hears(1, AfterCrash(6));
  it.loop.RunFor(seconds(1));
  EXPECT_TRUE(it.SaidTo(1).current);
  EXPECT_TRUE(it.volume_retry.OnFailed());
}

TEST(OpeningRun, WithoutAStateAVolumeThatFailsIsTriedAgainSoOften) {
  for (const bool looks : {true, false}) {
    SCOPED_TRACE(looks ? "looking" : "reading");
    OpeningOf it(1, 0, {});
    int left = 1000;  // number of tries that fail
    const auto fails = [&] { return left-- > 0; };
    it.checkpointer.newest = [&]() -> Result<StoredCheckpoint> {
      if (looks && fails()) return Fail(ErrorCode::kUnavailable, "stale handle");
      return CheckpointOfStep(5);
    };
    it.checkpointer.restored = [&]() -> Result<Restored> {
      if (!looks && fails()) return Fail(ErrorCode::kUnavailable, "stale handle");
      return Restored{.manifest = {.position = {.step = 5, .tick = 5}},
                      .state = StateCopy::Like(it.compute.state_shape()),
                      .passed_over = {}};
    };
    it.run->Advance();
    it.loop.RunFor(milliseconds(8900));
    EXPECT_EQ(it.told, Lines{});
    it.loop.RunFor(seconds(5));
    EXPECT_EQ(it.told, Lines{"failed: checkpoint volume: stale handle"});
    EXPECT_EQ(std::ranges::count(it.checkpointer.asked, "find newest"), 10);

    // A rank whose volume answers in time.
    OpeningOf well(1, 0, {});
    well.checkpointer.newest = it.checkpointer.newest;
    well.checkpointer.restored = it.checkpointer.restored;
    left = 9;
    well.run->Advance();
    well.loop.RunFor(seconds(20));
    EXPECT_EQ(well.told, Lines{"load 5"});
    EXPECT_TRUE(well.ready);
    EXPECT_TRUE(well.volume_retry.OnFailed()) << "earlier failures no longer count";
  }
}

TEST(OpeningRun, HearsNothingAfterItWasAbandoned) {
  OpeningOf it(2, 0, {});
  it.checkpointer.newest = [] { return CheckpointOfStep(5); };
  it.run->Begin();
  it.Hears(1, {});
  it.run->ServeState(1, true, 4);
  it.run.reset();
  it.loop.RunFor(seconds(60));
  EXPECT_EQ(it.told, Lines{});
  EXPECT_TRUE(it.SentTo(1, FrameKind::kState).empty());
}

TEST(OpeningRun, AloneItBeginsWithWhatItHolds) {
  OpeningOf it(1, 0, ByBoundary(6));
  it.news = true;
  it.CarryOut();
  EXPECT_TRUE(it.ready);
}

}  // namespace
}  // namespace pliant
