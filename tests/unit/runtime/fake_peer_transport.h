#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/collective/peer_transport.h"

namespace pliant {

// Links that a test makes and breaks. As the transports do, it drops what is sent to a peer that
// it is not connected to.
class FakePeerTransport final : public PeerTransport {
 public:
  struct Sent {
    LearnerId to;
    Frame frame;
  };
  std::set<LearnerId> connected;
  std::vector<LearnerId> asked_for;  // by Connect
  std::vector<LearnerId> dropped;    // by Disconnect
  std::vector<Sent> sent;

  // Of this kind, in order.
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
