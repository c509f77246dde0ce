#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/collective/peer_transport.h"

namespace pliant {

// Links that a test makes and breaks. Like the real transports, it drops frames to a peer that is
// not connected.
class FakePeerTransport final : public PeerTransport {
 public:
  struct Sent {
    LearnerId to;
    Frame frame;
  };
  std::set<LearnerId> connected;
  std::vector<LearnerId> asked_for;  // peers passed to Connect
  std::vector<LearnerId> dropped;    // peers passed to Disconnect
  std::vector<Sent> sent;

  // Frames of this kind, in order.
  std::vector<Frame> SentTo(const LearnerId& peer, FrameKind kind) const {
    std::vector<Frame> frames;
    for (const Sent& one : sent) {
      if (one.to == peer && one.frame.header.kind == kind) frames.push_back(one.frame);
    }
    return frames;
  }

  void SetHandler(PeerHandler* /*handler*/) override {}
  std::string address() const override { return "fake:1"; }
  void Connect(const Member& peer) override { asked_for.push_back(peer.id); }
  void Disconnect(const LearnerId& peer) override {
    dropped.push_back(peer);
    connected.erase(peer);
  }
  bool Connected(const LearnerId& peer) const override { return connected.contains(peer); }
  void Send(const LearnerId& peer, Frame frame) override {
    if (Connected(peer)) sent.push_back({.to = peer, .frame = std::move(frame)});
  }
};

}  // namespace pliant
