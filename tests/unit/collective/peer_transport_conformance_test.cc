// The contract of every peer transport, whatever carries its frames.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/collective/transport_world.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;

struct WorldKind {
  std::string name;
  std::unique_ptr<TransportWorld> (*make)();
};

class PeerTransportTest : public testing::TestWithParam<WorldKind> {
 protected:
  bool RunUntil(const std::function<bool()>& done) { return world_->RunUntil(done); }
  void Join(Recorder& a, Recorder& b) {
    a.Connect(b);
    b.Connect(a);
    ASSERT_TRUE(RunUntil([&] { return a.ConnectedTo(b) && b.ConnectedTo(a); }));
  }

  std::unique_ptr<TransportWorld> world_ = GetParam().make();
};

TEST_P(PeerTransportTest, ConnectsOnceBothWantIt) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  b.Connect(a);
  world_->RunFor(milliseconds(150));
  EXPECT_TRUE(a.connected.empty()) << "it did not call Connect";
  EXPECT_TRUE(b.connected.empty());
  a.Connect(b);
  ASSERT_TRUE(RunUntil([&] { return a.ConnectedTo(b) && b.ConnectedTo(a); }));
  EXPECT_EQ(a.connected, std::vector{b.id});
  EXPECT_EQ(b.connected, std::vector{a.id});

  a.Connect(b);
  b.Connect(a);
  world_->RunFor(milliseconds(50));
  EXPECT_EQ(a.connected.size(), 1U) << "repeating is harmless";
  EXPECT_TRUE(a.lost.empty());
  EXPECT_TRUE(b.lost.empty());
}

TEST_P(PeerTransportTest, ConnectsWhenBothAskAtOnce) {
  std::vector<std::unique_ptr<Recorder>> all;
  for (int i = 0; i < 5; ++i) all.push_back(std::make_unique<Recorder>(*world_, Learner(i)));
  for (auto& a : all)
    for (auto& b : all)
      if (a != b) a->Connect(*b);
  ASSERT_TRUE(RunUntil([&] {
    return std::ranges::all_of(all, [](const auto& a) { return a->connected.size() == 4; });
  }));
  for (auto& a : all) EXPECT_TRUE(a->lost.empty());
}

TEST_P(PeerTransportTest, NeverCallsBackWithinACall) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  Join(a, b);
  a.transport->Send(b.id, FrameOfTick(1));
  EXPECT_TRUE(b.frames.empty());
}

TEST_P(PeerTransportTest, KeepsFramesWholeAndInOrder) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  Join(a, b);
  constexpr Tick kFrames = 2000;
  for (Tick tick = 0; tick < kFrames; ++tick) {
    a.transport->Send(b.id, FrameOfTick(tick, std::string(tick % 700, 'x')));
    b.transport->Send(a.id, FrameOfTick(tick, std::to_string(tick)));
  }
  ASSERT_TRUE(RunUntil([&] { return a.frames.size() == kFrames && b.frames.size() == kFrames; }));
  for (Tick tick = 0; tick < kFrames; ++tick) {
    EXPECT_EQ(b.frames[tick].first, a.id);
    EXPECT_EQ(b.frames[tick].second.header, FrameOfTick(tick).header);
    EXPECT_EQ(TextOf(b.frames[tick].second), std::string(tick % 700, 'x'));
    EXPECT_EQ(TextOf(a.frames[tick].second), std::to_string(tick));
  }
}

TEST_P(PeerTransportTest, CarriesEveryFieldOfTheHeader) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  Join(a, b);
  const FrameHeader header{.kind = FrameKind::kFinished,
                           .membership = {.term = 0x1122334455667788, .counter = UINT64_MAX},
                           .tick = 0x99aabbccddeeff00,
                           .bucket = 0x01020304,
                           .node = 0x05060708,
                           .piece = 0xfffffffe};
  a.transport->Send(b.id, {.header = header});
  ASSERT_TRUE(RunUntil([&] { return !b.frames.empty(); }));
  EXPECT_EQ(b.frames.front().second.header, header);
  EXPECT_TRUE(b.frames.front().second.payload.view.empty());
}

TEST_P(PeerTransportTest, CarriesLargeFramesBothWays) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  Join(a, b);
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  const auto owned = std::make_shared<std::vector<std::byte>>(kBytes);
  for (std::size_t i = 0; i < kBytes; i += 8) std::memcpy(owned->data() + i, &i, sizeof(i));
  const Frame frame{.header = {.kind = FrameKind::kState},
                    .payload = {.owner = owned, .view = *owned}};
  a.transport->Send(b.id, frame);
  b.transport->Send(a.id, frame);
  a.transport->Send(b.id, FrameOfTick(7, "behind"));
  ASSERT_TRUE(RunUntil([&] { return a.frames.size() == 1 && b.frames.size() == 2; }));
  for (const Recorder* to : {&a, &b}) {
    const std::span<const std::byte> came = to->frames[0].second.payload.view;
    ASSERT_EQ(came.size(), kBytes);
    EXPECT_EQ(std::memcmp(came.data(), owned->data(), kBytes), 0);
  }
  EXPECT_EQ(TextOf(b.frames[1].second), "behind");
}

TEST_P(PeerTransportTest, LetsGoOfWhatWasSent) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  Join(a, b);
  const auto owned = std::make_shared<std::string>("gradient");
  const std::weak_ptr<std::string> watched = owned;
  Frame frame{.header = {}, .payload = {.owner = owned, .view = std::as_bytes(std::span(*owned))}};
  a.transport->Send(b.id, frame);
  ASSERT_TRUE(RunUntil([&] { return !b.frames.empty(); }));
  EXPECT_EQ(TextOf(b.frames.front().second), "gradient");
  b.frames.clear();
  world_->RunFor(milliseconds(10));
  EXPECT_EQ(watched.use_count(), 2) << "the test's and the frame's";
}

TEST_P(PeerTransportTest, TellsOfALostPeerOnce) {
  Recorder a(*world_, Learner(1));
  auto b = std::make_unique<Recorder>(*world_, Learner(2));
  const LearnerId b_id = b->id;
  Join(a, *b);
  b.reset();
  ASSERT_TRUE(RunUntil([&] { return !a.lost.empty(); }));
  EXPECT_EQ(a.lost, std::vector{b_id});
  EXPECT_FALSE(a.losses.front().reason.empty());
  EXPECT_FALSE(a.transport->Connected(b_id));
  a.transport->Send(b_id, FrameOfTick(1));  // dropped
  world_->RunFor(milliseconds(100));
  EXPECT_EQ(a.lost.size(), 1U);
}

TEST_P(PeerTransportTest, DisconnectIsSilentHereAndALossThere) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  Join(a, b);
  a.transport->Disconnect(b.id);
  EXPECT_FALSE(a.ConnectedTo(b));
  ASSERT_TRUE(RunUntil([&] { return !b.lost.empty(); }));
  EXPECT_EQ(b.lost, std::vector{a.id});
  b.Connect(a);
  world_->RunFor(milliseconds(100));
  EXPECT_FALSE(b.ConnectedTo(a)) << "the other side no longer wants it";
  EXPECT_TRUE(a.lost.empty());
  EXPECT_EQ(b.lost.size(), 1U);
}

TEST_P(PeerTransportTest, ConnectsAgainWhenBothAskAgain) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  for (Tick round = 0; round < 3; ++round) {
    Join(a, b);
    a.transport->Send(b.id, FrameOfTick(round));
    ASSERT_TRUE(RunUntil([&] { return b.frames.size() == round + 1; }));
    Recorder& leaver = round % 2 == 0 ? a : b;
    Recorder& other = round % 2 == 0 ? b : a;
    const std::size_t losses = other.lost.size();
    leaver.transport->Disconnect(other.id);
    ASSERT_TRUE(RunUntil([&] { return other.lost.size() == losses + 1; }));
  }
  EXPECT_EQ(b.frames.back().second.header.tick, 2U);
}

TEST_P(PeerTransportTest, APeerThatComesLaterIsDialledUntilItIsThere) {
  auto first = std::make_unique<Recorder>(*world_, Learner(1));
  const Member member = first->AsMember();
  first.reset();
  Recorder b(*world_, Learner(2));
  b.transport->Connect(member);
  world_->RunFor(milliseconds(100));
  EXPECT_TRUE(b.connected.empty());
  EXPECT_TRUE(b.lost.empty()) << "there never was a connection";
  b.transport->Disconnect(member.id);
  world_->RunFor(milliseconds(50));
}

// Processor time of the calling thread, on which the loop runs.
std::chrono::nanoseconds ProcessorTime() {
  timespec used{};
  EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TEST_P(PeerTransportTest, WaitsWithoutAskingAgainAndAgain) {
  Recorder a(*world_, Learner(1));
  Recorder b(*world_, Learner(2));
  Join(a, b);
  a.transport->Send(b.id, FrameOfTick(1));
  ASSERT_TRUE(RunUntil([&] { return !b.frames.empty(); }));
  Recorder waits_for_a(*world_, Learner(3));  // which does not connect to it
  waits_for_a.Connect(a);
  const auto before = ProcessorTime();
  world_->RunFor(milliseconds(600));
  EXPECT_LT(ProcessorTime() - before, milliseconds(300));
}

TEST_P(PeerTransportTest, CanBeLeftFromWithinACallback) {
  Recorder a(*world_, Learner(1));
  auto b = std::make_unique<Recorder>(*world_, Learner(2));
  Recorder c(*world_, Learner(3));
  Join(a, *b);
  Join(*b, c);
  bool gone = false;
  b->on_frame = [&](const LearnerId& peer, const Frame&) { b->transport->Disconnect(peer); };
  a.transport->Send(b->id, FrameOfTick(1));
  a.transport->Send(b->id, FrameOfTick(2));
  ASSERT_TRUE(RunUntil([&] { return !a.lost.empty(); }));
  EXPECT_EQ(b->frames.size(), 1U) << "nothing comes after Disconnect";
  b->on_frame = [&](const LearnerId&, const Frame&) {
    b->transport.reset();
    gone = true;
  };
  c.transport->Send(b->id, FrameOfTick(3));
  c.transport->Send(b->id, FrameOfTick(4));
  ASSERT_TRUE(RunUntil([&] { return gone && !c.lost.empty(); }));
  EXPECT_EQ(b->frames.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PeerTransportTest,
                         testing::Values(WorldKind{"Memory", NewMemoryWorld},
                                         WorldKind{"PlainTcp", NewPlainTcpWorld},
                                         WorldKind{"Tls", NewTlsWorld},
                                         WorldKind{"SharedMemory", NewShmWorld}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace pliant
