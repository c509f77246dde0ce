#include "trainer/runtime/carrier.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "base/sim_event_loop.h"
#include "tests/unit/runtime/fake_peer_transport.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/protocol/membership_view.h"

namespace pliant {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

using Reports = std::vector<std::optional<RoundsReport>>;

RoundsReport Of(const std::string& device, bool ready = false, int version = 22809) {
  return {.ready = ready, .partner = {.version = version, .device = device}};
}

LearnerId Learner(int rank) { return {.name = Format("learner-{}", rank), .nonce = 1}; }

// Answers when the test says so.
class FakeCommunicators final : public Communicators {
 public:
  CommunicatorPartner partner() const override { return {.version = 22809, .device = "a"}; }
  void NewId(std::function<void(Result<CommunicatorId>)> done) override { id = std::move(done); }
  void Join(const Seat& asked, std::function<void(Status)> done) override {
    seat = asked;
    joined = std::move(done);
  }
  void Abort(std::function<void()> done) override {
    ++aborts;
    aborted = std::move(done);
  }

  std::function<void(Result<CommunicatorId>)> id;
  std::function<void(Status)> joined;
  std::function<void()> aborted;
  std::optional<Seat> seat;
  int aborts = 0;
};

// The carrier of rank `self`, of three.
struct CarrierOf {
  explicit CarrierOf(int self, bool all_reduce = false) : rank(self), view(Learner(self)) {
    Membership membership{.id = {1, 1}, .members = {}};
    for (int other = 0; other < 3; ++other) {
      membership.members.push_back({.id = Learner(other), .address = "x:1"});
      if (other != self) transport.connected.insert(Learner(other));
    }
    view.Enter(std::move(membership), {});
    carrier.emplace(
        all_reduce,
        Carrier::Parts{.loop = loop,
                       .tasks = tasks,
                       .communicators = &communicators,
                       .exchanges = exchanges,
                       .peers = peers,
                       .stats = stats,
                       .on_failed = [this](const std::string& why) { failures.push_back(why); },
                       .on_hang = [this](std::string why) { hangs.push_back(std::move(why)); }});
    carrier->Enter(self, 3);
  }
  ~CarrierOf() { tasks.End(); }

  void Run() { loop.RunFor(seconds(2)); }
  // All can use a communicator, and say whether they have one.
  void Tick(bool ready = false) {
    carrier->OnTick(Reports{Of("a", ready), Of("b", ready), Of("c", ready)}, true);
    Run();
  }
  Status Offered(int by, std::size_t bytes = 128) {
    const auto id = std::make_shared<std::vector<std::byte>>(bytes, std::byte{7});
    const Status taken = carrier->OnOffer(
        by, {.header = {.kind = FrameKind::kCommunicator}, .payload = {.owner = id, .view = *id}});
    Run();
    return taken;
  }
  void Answer(Status status) {
    communicators.joined(std::move(status));
    Run();
  }
  StepCarrier For(int shards, bool redo = false) const {
    Team team{.in_sync = {true, true, true},
              .learner_of_rank = {0, 1, 2},
              .learners = 3,
              .map = AssignShards(shards, 3),
              .redo = {}};
    if (redo) team.redo = ReassignMissingShards(shards, {{}, {}, {}}, team.in_sync);
    return carrier->For(team);
  }
  bool InRounds() const { return For(8) == StepCarrier::kRounds; }
  std::size_t offers() const {
    return transport.SentTo(Learner(1), FrameKind::kCommunicator).size();
  }

  const int rank;
  SimEventLoop loop;
  Tasks tasks{loop, [] {}};
  GradientExchanges exchanges{{.elements = 1}, [](int, Frame) {}, HeapMemory()};
  FakeCommunicators communicators;
  FakePeerTransport transport;
  MembershipView view;
  Position group;
  LearnerStats stats;
  Peers peers{&transport, view, group, stats};
  std::vector<std::string> failures;
  std::vector<std::string> hangs;
  std::optional<Carrier> carrier;
};

const Status kBroken = Fail(ErrorCode::kUnavailable, "broken");

TEST(RoundsReport, AllDecideAlikeFromAllReports) {
  const struct {
    const char* name;
    Reports by_rank;
    bool can;
    bool ready;
  } kCases[] = {
      {"alone", {Of("a", true)}, false, false},
      {"two devices", {Of("a"), Of("b")}, true, false},
      {"both have it", {Of("a", true), Of("b", true)}, true, true},
      {"one has it", {Of("a", true), Of("b")}, true, false},
      {"one cannot", {Of("a", true), std::nullopt}, false, false},
      {"the first one cannot", {std::nullopt, Of("a", true)}, false, false},
      {"one device for two", {Of("a"), Of("b"), Of("a")}, false, false},
      {"another version", {Of("a"), Of("b", false, 23000)}, false, false},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    EXPECT_EQ(CanExchange(test.by_rank), test.can);
    EXPECT_EQ(AllReady(test.by_rank), test.ready);
  }
}

TEST(Carrier, RankZeroOffersACommunicatorOnce) {
  CarrierOf first(0, /*all_reduce=*/true);
  first.Tick();
  ASSERT_TRUE(first.communicators.id);
  EXPECT_EQ(first.offers(), 0U);
  first.communicators.id(CommunicatorId{});
  first.Run();
  first.Tick();
  EXPECT_EQ(first.offers(), 1U);
  ASSERT_TRUE(first.communicators.seat);
  EXPECT_EQ(first.communicators.seat->rank, 0);
  EXPECT_EQ(first.communicators.seat->world_size, 3);
  EXPECT_TRUE(first.communicators.seat->all_reduce);
  EXPECT_EQ(first.carrier->Report(), Of("a"));
  first.Answer({});
  EXPECT_EQ(first.carrier->Report(), Of("a", /*ready=*/true));
  EXPECT_FALSE(first.InRounds()) << "the others may not have it";
  first.Tick(/*ready=*/true);
  EXPECT_TRUE(first.InRounds());
  first.carrier->Leave();
  first.carrier->Leave();
  EXPECT_FALSE(first.InRounds());
  EXPECT_EQ(first.communicators.aborts, 1);
}

TEST(Carrier, NobodyIsLeftBehind) {
  CarrierOf first(0);
  first.carrier->OnTick(Reports{Of("a"), Of("b"), Of("c")}, /*all_in_sync=*/false);
  EXPECT_FALSE(first.communicators.id) << "one catches up";
  first.carrier->OnTick(Reports{Of("a"), Of("b"), std::nullopt}, true);
  EXPECT_FALSE(first.communicators.id) << "one cannot";
  first.Tick();
  first.communicators.id(CommunicatorId{});
  first.Run();
  first.Answer({});
  first.Tick(/*ready=*/true);
  EXPECT_TRUE(first.InRounds());
  first.carrier->OnTick(Reports{Of("a", true), Of("b", true), std::nullopt}, true);
  EXPECT_FALSE(first.InRounds()) << "one has lost it";
}

TEST(Carrier, FramesCarryWhatDevicesCannot) {
  CarrierOf it(1);
  it.Tick(/*ready=*/true);
  EXPECT_EQ(it.For(8), StepCarrier::kRounds);
  EXPECT_EQ(it.For(8, /*redo=*/true), StepCarrier::kFrames) << "the first tick of a membership";
  EXPECT_EQ(it.For(128), StepCarrier::kRounds);
  ASSERT_GT(GradientRounds::kMaxNodes, NodesOf(AssignShards(128, 3)).size());
  // Nodes of single shards, as after many losses.
  ShardMap single{.logical_shards = 256, .blocks_of_rank = {{}, {}, {}}};
  for (int shard = 0; shard < 256; ++shard)
    single.blocks_of_rank[static_cast<std::size_t>(shard % 3)].push_back(
        {.first = shard, .count = 1});
  EXPECT_EQ(it.carrier->For({.in_sync = {true, true, true},
                             .learner_of_rank = {0, 1, 2},
                             .learners = 3,
                             .map = single,
                             .redo = {}}),
            StepCarrier::kFrames);
  EXPECT_EQ(it.carrier->For({.in_sync = {true},
                             .learner_of_rank = {0},
                             .learners = 1,
                             .map = AssignShards(8, 1),
                             .redo = {}}),
            StepCarrier::kNone);
}

TEST(Carrier, TakesOneOfferOfRankZero) {
  CarrierOf other(2);
  EXPECT_EQ(other.Offered(1).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(other.Offered(0, 127).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(other.communicators.seat);
  ASSERT_TRUE(other.Offered(0));
  EXPECT_EQ(other.communicators.seat->rank, 2);
  EXPECT_EQ(other.communicators.seat->id[127], std::byte{7});
  EXPECT_EQ(other.Offered(0).error().code, ErrorCode::kInvalid);
  CarrierOf none(2);
  none.carrier->Leave();
  EXPECT_TRUE(none.Offered(0)) << "rank 0 has sent it before it knew";
  EXPECT_FALSE(none.communicators.seat);
  EXPECT_EQ(none.Offered(1).error().code, ErrorCode::kInvalid);
  none.Tick(/*ready=*/true);
  EXPECT_FALSE(none.InRounds());
}

TEST(Carrier, AfterAFailureItWaitsLongerEachTime) {
  CarrierOf it(1);
  ASSERT_TRUE(it.Offered(0));
  it.Answer(kBroken);
  EXPECT_EQ(it.stats.communicators_failed, 1U);
  it.loop.RunFor(minutes(2));
  EXPECT_EQ(it.carrier->Report(), std::nullopt) << "for the whole membership";
  EXPECT_TRUE(it.Offered(0)) << "rank 0 may not know yet";
  const auto enter = [&] {
    it.carrier->Leave();
    it.carrier->Enter(1, 3);
  };
  enter();
  EXPECT_TRUE(it.carrier->Report());
  ASSERT_TRUE(it.Offered(0));
  it.Answer({});
  it.carrier->OnRoundsFailed("a network");
  it.Run();
  EXPECT_THAT(it.failures, ElementsAre("a network"));
  enter();
  it.loop.RunFor(seconds(100));
  EXPECT_EQ(it.carrier->Report(), std::nullopt);
  it.loop.RunFor(seconds(20));
  EXPECT_TRUE(it.carrier->Report());
  it.loop.RunFor(hours(2));
  it.carrier->OnRoundsFailed("again");
  it.Run();
  enter();
  it.loop.RunFor(seconds(70));
  EXPECT_TRUE(it.carrier->Report()) << "the earlier failures are forgotten";
}

TEST(Carrier, ALostPeerExplainsWhyACommunicatorFailed) {
  for (const bool was_ready : {false, true}) {
    SCOPED_TRACE(was_ready);
    CarrierOf it(1);
    ASSERT_TRUE(it.Offered(0));
    if (was_ready) {
      it.Answer({});
      it.carrier->OnRoundsFailed("remote process exited");
    } else {
      it.communicators.joined(kBroken);
    }
    it.loop.RunFor(std::chrono::milliseconds(100));
    EXPECT_EQ(it.carrier->Report(), std::nullopt);
    it.carrier->Leave();  // the loss ends the membership
    it.carrier->Enter(1, 3);
    it.loop.RunFor(seconds(5));
    EXPECT_THAT(it.failures, IsEmpty());
    EXPECT_TRUE(it.carrier->Report());
  }
}

TEST(Carrier, AResultForAnEarlierMembershipIsIgnored) {
  CarrierOf it(1);
  ASSERT_TRUE(it.Offered(0));
  const auto late = it.communicators.joined;
  it.carrier->Leave();
  it.carrier->Enter(1, 3);
  late(kBroken);
  it.Run();
  EXPECT_EQ(it.carrier->Report(), Of("a"));
  EXPECT_EQ(it.stats.communicators_failed, 0U);
  ASSERT_TRUE(it.Offered(0));
  late({});
  it.Run();
  EXPECT_EQ(it.carrier->Report(), Of("a")) << "it does not have the new one yet";
}

TEST(Carrier, AnAbortThatHangsEndsTheProcess) {
  CarrierOf it(1);
  it.carrier->Leave();
  EXPECT_EQ(it.communicators.aborts, 0) << "there was nothing";
  for (const bool hangs : {false, true}) {
    it.carrier->Enter(1, 3);
    ASSERT_TRUE(it.Offered(0));
    it.carrier->Leave();
    if (!hangs) it.communicators.aborted();
    it.loop.RunFor(Carrier::kMaxAbort - seconds(1));
    EXPECT_THAT(it.hangs, IsEmpty());
    it.loop.RunFor(seconds(2));
  }
  EXPECT_THAT(it.hangs, ElementsAre("a communicator was not aborted within 10 s"));
}

}  // namespace
}  // namespace pliant
