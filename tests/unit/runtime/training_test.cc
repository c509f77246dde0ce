#include "trainer/runtime/training.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/sim_event_loop.h"
#include "tests/simulation/process.h"
#include "tests/simulation/toy_program.h"
#include "tests/unit/runtime/fake_checkpointer.h"
#include "tests/unit/runtime/fake_peer_transport.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Lines = std::vector<std::string>;

constexpr Tick kBacklog = 2;
constexpr MembershipId kOpened{2, 7};

// Ten optimizer steps, each of four shards.
const DataSpec kSteps{.train_samples = 32,
                      .test_samples = 0,
                      .epochs = 5,
                      .global_batch_size = 16,
                      .logical_shards = 4,
                      .seed = 5};

LearnerId Trainee(int rank) { return {.name = Format("learner-{}", rank), .nonce = 1}; }
Membership MembershipOf(MembershipId id, int world_size) {
  Membership membership{.id = id, .members = {}};
  for (int rank = 0; rank < world_size; ++rank)
    membership.members.push_back({.id = Trainee(rank), .address = "x:1"});
  return membership;
}
StateSummary HeldAt(Tick ticks, std::string last_line = "") {
  return {
      .position = {.has_state = true, .applied_ticks = ticks, .last_line = std::move(last_line)},
      .current = true};
}

// Rank `self` of a membership whose members hold `held`, by rank. Its owner commits when notified,
// as the learner does, and leaves everything else to the test.
struct TrainingOf final : Training::Owner, CoordinatorSession::Owner, MetricsSink {
  // The program reaches its state by steps with gradients of `gradient`.
  TrainingOf(SimEventLoop& event_loop, int self, const std::vector<StateSummary>& held,
             float gradient = 0.1F, const sim::Habits& habits = {})
      : loop(event_loop), self_rank(self), program(kSteps, 0, habits), view(Trainee(self)) {
    const int world_size = static_cast<int>(held.size());
    view.Enter(MembershipOf(kOpened, world_size), {});
    Opening opening(world_size, self, held[static_cast<std::size_t>(self)]);
    for (int rank = 0; rank < world_size; ++rank) {
      opening.OnOpen(rank, held[static_cast<std::size_t>(rank)]);
      if (rank != self) transport.connected.insert(Trainee(rank));
    }
    for (Tick step = 0; step < held[static_cast<std::size_t>(self)].position.applied_ticks; ++step)
      Step(step, gradient);
    state.MoveTo(opening.own().position);
    training.emplace(Training::Options{.state_slice_bytes = 1, .max_backlog = kBacklog},
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
                     ticks, carrier, *this, opening);
  }
  ~TrainingOf() override { tasks.End(); }

  Trailer TrailerHead(const TickPlan& /*plan*/) override { return says; }
  void OnBoundary(const TickOutcome& /*outcome*/) override { ++boundaries; }
  bool OthersContinue() const override { return others_go_on; }
  void Fail(const Error& error) override { failed = error; }
  std::vector<LearnerMessage> Greeting() override { return {}; }
  Progress MakeProgress() override { return {}; }
  void Obey(const CoordinatorMessage& /*message*/) override {}
  void Append(Tick tick, std::string_view line) override {
    metrics.push_back(Format("append {} {}", tick, line));
  }
  void CutFrom(Tick tick) override { metrics.push_back(Format("cut {}", tick)); }

  void Step(Tick step, float value) {
    const std::vector<float> gradient(sim::ToyProgram::kParameters, value);
    const std::vector<std::byte> buffers(program.info().buffer_bytes);
    ASSERT_TRUE(program.Commit(
        {.step = step, .schedule_step = step, .gradient = gradient, .buffers = buffers}));
  }
  void Commit() {
    tasks.Handle([this] { training->CommitWhenComplete(); });
  }
  void CarryOut() {
    std::deque<Move> all;
    moves.PutBefore(all);
    for (const Move& move : all)
      if (std::get<SimpleMove>(move) == SimpleMove::kCommit) Commit();
  }
  void Hears(int rank, const Frame& frame) {
    tasks.Handle([&] { training->OnTickFrame(rank, frame); });
  }
  void BeginTick() {
    tasks.Handle([this] { training->BeginTick(); });
  }
  // The part of one tick that this rank can do alone.
  void ComputeTick() {
    BeginTick();
    loop.RunFor(seconds(1));
  }
  // Receives what `from` has sent to it since the last call, apart from state.
  void Take(TrainingOf& from) {
    for (const Frame& frame : TakeSent(from, /*of_state=*/false)) Hears(from.self_rank, frame);
  }
  void TakeState(TrainingOf& from) {
    for (const Frame& frame : TakeSent(from, /*of_state=*/true))
      tasks.Handle([&] { training->OnStateFrame(from.self_rank, frame); });
  }
  std::vector<Frame> TakeSent(TrainingOf& from, bool of_state) const {
    std::vector<Frame> taken;
    std::erase_if(from.transport.sent, [&](const FakePeerTransport::Sent& one) {
      const bool is_state = one.frame.header.kind == FrameKind::kState;
      if (one.to != Trainee(self_rank) || is_state != of_state) return false;
      taken.push_back(one.frame);
      return true;
    });
    return taken;
  }
  void SpoilState() { std::ranges::fill(program.State().front().bytes, std::byte{1}); }
  std::size_t StateFramesTo(int rank) const {
    return transport.SentTo(Trainee(rank), FrameKind::kState).size();
  }

  SimEventLoop& loop;
  const int self_rank;
  Tasks tasks{loop, [this] { CarryOut(); }};
  Moves moves;
  sim::ToyProgram program;
  sim::SimCompute compute{loop,
                          program,
                          kSteps.logical_shards,
                          [](std::size_t) { return milliseconds(10); },
                          [](const ShardTask&) {},
                          [] {}};
  const Schedule schedule = *Schedule::Make(kSteps);
  const WorkSplit split{schedule, Reproducibility::kBitwise};
  TrainingState state{schedule};
  FakePeerTransport transport;
  MembershipView view;
  LearnerStats stats;
  Peers peers{&transport, view, state.group, stats};
  StateServer states{std::size_t{1} << 20,
                     [this](int rank, Frame frame) { peers.SendTo(rank, std::move(frame)); }};
  TickRunner ticks{
      1, {.tasks = tasks, .compute = compute, .split = split, .peers = peers, .aborted = [] {}}};
  GradientExchanges exchanges{
      {.elements = compute.info().gradient_elements, .buckets = {.first = 16, .rest = 16}},
      [this](int rank, Frame frame) { peers.SendTo(rank, std::move(frame)); },
      HeapMemory()};
  Carrier carrier{false,
                  {.loop = loop,
                   .tasks = tasks,
                   .exchanges = exchanges,
                   .peers = peers,
                   .stats = stats,
                   .on_failed = [this](const std::string& why) { told.push_back(why); },
                   .on_hang = [this](std::string why) { told.push_back(std::move(why)); }}};
  FakeCheckpointer checkpointer{loop};
  VolumeRetry volume_retry;
  CoordinatorSession session{nullptr, tasks, 0, *this};
  Trailer says;
  bool others_go_on = false;
  int boundaries = 0;
  Lines metrics;
  Lines told;
  std::optional<Error> failed;
  std::optional<Training> training;
};

// ---- Start ----

TEST(Training, RankZeroTakesMetricsOver) {
  const struct {
    const char* name;
    int self;
    StateSummary held;
    Lines want;
  } kCases[] = {
      {"there is no last line", 0, HeldAt(5), {"cut 5"}},
      {"at the first tick", 0, HeldAt(0), {"cut 0"}},
      {"the line of the last tick may be missing", 0, HeldAt(5, "{}"), {"cut 4", "append 4 {}"}},
      {"others write none", 1, HeldAt(5, "{}"), {}},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    SimEventLoop loop;
    TrainingOf it(loop, test.self, {test.held, test.held});
    it.training->Begin();
    EXPECT_EQ(it.metrics, test.want);
  }
}

TEST(Training, ServesThoseBehindUnlessItIsLeft) {
  for (const bool leaves : {false, true}) {
    SimEventLoop loop;
    TrainingOf it(loop, 0, {HeldAt(3), HeldAt(2), HeldAt(3)});
    it.training->Begin();
    EXPECT_EQ(it.StateFramesTo(1), 0U) << "not before the copy is made";
    if (leaves) it.training->Leave();
    loop.RunFor(seconds(1));
    EXPECT_EQ(it.StateFramesTo(1) > 0, !leaves);
    EXPECT_EQ(it.StateFramesTo(2), 0U) << "rank 2 holds the state";
  }
}

// ---- A tick is committed ----

void TakeTick(std::span<TrainingOf> members) {
  for (TrainingOf& it : members) it.ComputeTick();
  for (int round = 0; round < 3; ++round) {  // nodes, then roots
    for (TrainingOf& it : members) {
      for (TrainingOf& from : members) it.Take(from);
    }
  }
  members.front().loop.RunFor(seconds(1));
}

TEST(Training, AMemberWhoseStateDiffersFailsAndTheOthersContinue) {
  SimEventLoop loop;
  const std::vector<StateSummary> held(3, HeldAt(1));
  std::array<TrainingOf, 3> members = {TrainingOf(loop, 0, held), TrainingOf(loop, 1, held),
                                       TrainingOf(loop, 2, held, 0.5F)};
  TakeTick(members);
  for (const TrainingOf& it : members) {
    SCOPED_TRACE(it.self_rank);
    const bool differs = it.self_rank == 2;
    EXPECT_EQ(it.failed.has_value(), differs);
    EXPECT_EQ(it.boundaries, differs ? 0 : 1);
    EXPECT_EQ(it.told, Lines{});
  }
  EXPECT_EQ(members[2].failed->code, ErrorCode::kCorrupt);
}

// The second tick has a spot check of rank 2.
TEST(Training, AShardThatComesOutUnequalFailsAllUnlessAStateDiffers) {
  for (const bool state_differs : {false, true}) {
    SCOPED_TRACE(state_differs);
    SimEventLoop loop;
    const std::vector<StateSummary> held(3, HeldAt(1));
    const sim::Habits habits{.process_seed = state_differs ? 0U : 1U};
    std::array<TrainingOf, 3> members = {TrainingOf(loop, 0, held), TrainingOf(loop, 1, held),
                                         TrainingOf(loop, 2, held, 0.1F, habits)};
    TakeTick(members);
    for (const TrainingOf& it : members) ASSERT_EQ(it.boundaries, 1);
    if (state_differs) members[2].SpoilState();
    TakeTick(members);
    for (const TrainingOf& it : members) {
      SCOPED_TRACE(it.self_rank);
      const bool fails = !state_differs || it.self_rank == 2;
      ASSERT_EQ(it.failed.has_value(), fails);
      EXPECT_EQ(it.boundaries, fails ? 1 : 2);
      if (!fails) continue;
      const std::string& said = it.failed->message;
      EXPECT_EQ(it.failed->code, state_differs ? ErrorCode::kCorrupt : ErrorCode::kInvalid);
      EXPECT_EQ(said.starts_with("shard "), !state_differs) << said;
      EXPECT_EQ(said.contains("of step 2 (samples "), !state_differs) << said;
      EXPECT_EQ(said.contains("learner-2"), !state_differs) << said;
    }
  }
}

// Completion may be notified more than once. The reaction to a commit may be the end.
TEST(Training, ATickIsCommittedOnceWhateverItLeadsTo) {
  const struct {
    const char* name;
    std::function<void(Training&)> ends;
  } kCases[] = {
      {"it is left", [](Training& training) { training.Leave(); }},
      {"all leave", [](Training& training) { training.Drain(); }},
      {"no tick is left", [](Training& training) { training.Finish(); }},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    SimEventLoop loop;
    TrainingOf it(loop, 0, {HeldAt(0)});
    it.training->Begin();
    it.ComputeTick();
    EXPECT_EQ(it.boundaries, 1);
    EXPECT_EQ(it.program.steps(), 1U);
    test.ends(*it.training);
    it.Commit();
    loop.RunFor(seconds(1));
    EXPECT_EQ(it.boundaries, 1);
    EXPECT_EQ(it.program.steps(), 1U);
  }
}

TEST(Training, OneThatIsFarBehindIsWaitedFor) {
  const struct {
    const char* name;
    std::function<void(TrainingOf&)> before;
    Tick want;  // committed ticks, of five
  } kCases[] = {
      {"too many ticks wait at it", [](TrainingOf&) {}, 3},
      {"unless it begins again with the next tick",
       [](TrainingOf& it) { it.says.announced = MembershipOf({2, 8}, 2); }, 5},
      {"unless the others have continued", [](TrainingOf& it) { it.others_go_on = true; }, 5},
      {"unless a member is about to leave",
       [](TrainingOf& it) { ASSERT_TRUE(it.view.Propose(MembershipOf({2, 8}, 1), kOpened)); }, 5},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    SimEventLoop loop;
    TrainingOf it(loop, 0, {HeldAt(0), {}});
    it.training->Begin();
    test.before(it);
    for (int tick = 0; tick < 5 && it.boundaries == tick; ++tick) it.ComputeTick();
    EXPECT_EQ(it.state.applied(), test.want);
    EXPECT_EQ(it.told, Lines{});
    if (test.want == 5) continue;
    // The peer reports that it is one tick further.
    it.Hears(1, {.header = {.kind = FrameKind::kTrailer, .tick = 1},
                 .payload = EncodeTrailer({.in_sync = false})});
    loop.RunFor(seconds(1));
    EXPECT_EQ(it.state.applied(), test.want + 1);
  }
}

// Otherwise they would wait with the last tick forever.
TEST(Training, OneThatHasAllTicksStillReportsHowFarItIs) {
  SimEventLoop loop;
  const std::vector<StateSummary> held = {HeldAt(6), {}};
  TrainingOf first(loop, 0, held);
  TrainingOf behind(loop, 1, held);
  first.training->Begin();
  behind.training->Begin();
  for (int tick = 0; tick < 4; ++tick) {
    behind.BeginTick();
    first.ComputeTick();
    behind.Take(first);
  }
  EXPECT_EQ(behind.state.applied(), 10U) << "it has all ticks, and not the state";
  EXPECT_EQ(first.state.applied(), 9U) << "the other waits";
  behind.training->Finish();
  behind.TakeState(first);
  loop.RunFor(seconds(1));
  first.Take(behind);
  loop.RunFor(seconds(1));
  EXPECT_EQ(first.state.applied(), 10U);
  EXPECT_FALSE(behind.training->catching_up());
}

}  // namespace
}  // namespace pliant
