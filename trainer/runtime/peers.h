#pragma once

#include <memory>
#include <vector>

#include "trainer/collective/peer_transport.h"
#include "trainer/protocol/membership_view.h"
#include "trainer/protocol/position.h"
#include "trainer/runtime/learner_stats.h"

namespace pliant {

// A learner's links to other members, by rank in its current membership. Lives as long as the
// learner.
class Peers {
 public:
  // All are borrowed. `transport`: none for a learner that trains alone. `group`: the position of
  // the membership's ticks, which most frames carry.
  Peers(PeerTransport* transport, const MembershipView& view, const Position& group,
        LearnerStats& stats)
      : transport_(transport), view_(view), group_(group), stats_(stats) {}

  bool alone() const { return transport_ == nullptr; }

  // Connects to all other members; repeating it is harmless.
  void Connect(const Membership& membership);
  void Connect(const Member& member) { transport_->Connect(member); }  // connects again
  // Drops links that no membership needs.
  void DropUnneeded();
  void Disconnect(const LearnerId& peer) { transport_->Disconnect(peer); }
  bool ConnectedToAll(const Membership& membership) const;
  std::vector<int> ConnectedRanks() const;
  // One copy of the name, which early frames share.
  std::shared_ptr<const LearnerId> Shared(const LearnerId& peer) const;

  void Send(const LearnerId& peer, Frame frame);
  void SendTo(int rank, Frame frame) { Send(view_.member(rank), std::move(frame)); }
  void SendTo(int rank, FrameKind kind, Bytes payload = {}) {
    SendTo(rank, FrameOf(kind, std::move(payload)));
  }
  void SendToAll(FrameKind kind, Bytes payload = {}) { SendToAll(FrameOf(kind, payload)); }
  void SendToAll(const Frame& frame);
  // Asks `rank` for more of the state that this learner receives.
  void AskForMoreState(int rank);
  // A frame with the current membership and tick.
  Frame FrameOf(FrameKind kind, Bytes payload = {}) const;

 private:
  PeerTransport* const transport_;
  const MembershipView& view_;
  const Position& group_;
  LearnerStats& stats_;
  // Peers that are to be connected, sorted.
  std::vector<std::shared_ptr<const LearnerId>> wanted_;
};

}  // namespace pliant
