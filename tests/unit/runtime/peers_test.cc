#include "trainer/runtime/peers.h"

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/runtime/fake_peer_transport.h"
#include "trainer/protocol/state_transfer.h"
#include "trainer/protocol/wire.h"

namespace pliant {
namespace {

LearnerId PeerOf(char name) { return {.name = std::string(1, name), .pod_uid = "u", .nonce = 1}; }
Membership PeersOf(MembershipId id, const std::string& names) {
  Membership membership{.id = id, .members = {}};
  for (const char name : names) {
    membership.members.push_back({.id = PeerOf(name), .address = "x:1"});
  }
  return membership;
}
std::string Spelled(const std::vector<LearnerId>& ids) {
  std::string names;
  for (const LearnerId& id : ids) names += id.name;
  return names;
}

// The links of learner "s".
struct Linking {
  FakePeerTransport transport;
  MembershipView view{PeerOf('s')};
  Position group{.applied_ticks = 7};
  LearnerStats stats;
  Peers peers{&transport, view, group, stats};

  explicit Linking(const std::string& connected = "") {
    view.Enter(PeersOf({1, 5}, "asb"), {});
    for (const char name : connected) transport.connected.insert(PeerOf(name));
  }
};

TEST(Peers, WantsLinksToAllOtherMembers) {
  Linking it;
  it.peers.Connect(PeersOf({1, 5}, "bsa"));
  EXPECT_EQ(Spelled(it.transport.asked_for), "ba");
}

TEST(Peers, DropsTheLinksThatNoMembershipNeeds) {
  Linking it("abcd");
  it.peers.Connect(PeersOf({1, 4}, "asbdc"));
  it.peers.Connect(PeersOf({1, 5}, "asb"));
  it.peers.DropUnneeded();
  EXPECT_EQ(Spelled(it.transport.dropped), "cd");
  it.peers.DropUnneeded();
  EXPECT_EQ(it.transport.dropped.size(), 2U) << "each is dropped once";
  it.peers.Connect(PeersOf({1, 4}, "c"));
  it.peers.DropUnneeded();
  EXPECT_EQ(Spelled(it.transport.dropped), "cdc");
}

TEST(Peers, KnowsWhoIsConnected) {
  for (const auto& [connected, to_all, ranks] : {std::tuple("", false, std::vector<int>{}),
                                                 {"a", false, {0}},
                                                 {"b", false, {2}},
                                                 {"ab", true, {0, 2}},
                                                 {"abc", true, {0, 2}}}) {
    SCOPED_TRACE(connected);
    const Linking it(connected);
    EXPECT_EQ(it.peers.ConnectedToAll(it.view.current()), to_all);
    EXPECT_EQ(it.peers.ConnectedRanks(), ranks);
  }
  EXPECT_TRUE(Linking().peers.ConnectedToAll(PeersOf({1, 6}, "s"))) << "alone";
}

TEST(Peers, AFrameIsOfThePresentMembershipAndTick) {
  Linking it("ab");
  it.group.applied_ticks = 9;
  it.peers.SendTo(2, FrameKind::kFinished, TextPayload("abc"));
  ASSERT_EQ(it.transport.sent.size(), 1U);
  EXPECT_EQ(it.transport.sent[0].to, PeerOf('b'));
  EXPECT_EQ(it.transport.sent[0].frame.header,
            (FrameHeader{.kind = FrameKind::kFinished, .membership = {1, 5}, .tick = 9}));
  EXPECT_EQ(TextOfPayload(it.transport.sent[0].frame.payload), "abc");
  EXPECT_EQ(it.stats.bytes_sent, 3U);
}

TEST(Peers, SendsToAllMembersButItself) {
  Linking it("absc");
  it.peers.SendToAll(FrameKind::kTrailer, TextPayload("abcd"));
  ASSERT_EQ(it.transport.sent.size(), 2U);
  EXPECT_EQ(it.transport.sent[0].to, PeerOf('a'));
  EXPECT_EQ(it.transport.sent[1].to, PeerOf('b'));
  EXPECT_EQ(it.stats.bytes_sent, 8U);
}

TEST(Peers, AsksForTheNextBatchOfAState) {
  Linking it("ab");
  it.peers.AskForMoreState(0);
  const std::vector<Frame> frames = it.transport.SentTo(PeerOf('a'), FrameKind::kStateRequest);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].header.node, kLastOfBatch);
}

TEST(Peers, EarlyFramesOfOnePeerShareItsName) {
  Linking it;
  it.peers.Connect(PeersOf({1, 5}, "bsa"));
  EXPECT_EQ(it.peers.Shared(PeerOf('a')), it.peers.Shared(PeerOf('a')));
  EXPECT_EQ(*it.peers.Shared(PeerOf('a')), PeerOf('a'));
  EXPECT_EQ(*it.peers.Shared(PeerOf('b')), PeerOf('b'));
  EXPECT_EQ(*it.peers.Shared(PeerOf('c')), PeerOf('c')) << "even for a peer without a link";
  EXPECT_NE(it.peers.Shared(PeerOf('c')), it.peers.Shared(PeerOf('c')));
}

TEST(Peers, AloneThereAreNone) {
  MembershipView view(PeerOf('s'));
  view.Enter(PeersOf({1, 1}, "s"), {});
  const Position group;
  LearnerStats stats;
  Peers peers(nullptr, view, group, stats);
  EXPECT_TRUE(peers.alone());
  peers.Connect(view.current());
  peers.DropUnneeded();
  peers.SendToAll(FrameKind::kTrailer);
  EXPECT_TRUE(peers.ConnectedToAll(view.current()));
  EXPECT_TRUE(peers.ConnectedRanks().empty());
  EXPECT_FALSE(Linking().peers.alone());
}

}  // namespace
}  // namespace pliant
