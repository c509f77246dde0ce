#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

// A kind of transport with its loop, as the common tests use it.
class TransportWorld {
 public:
  virtual ~TransportWorld() = default;
  virtual std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self) = 0;
  virtual EventLoop& loop() = 0;
  // Runs the loop until `done` holds; false after a generous timeout.
  virtual bool RunUntil(const std::function<bool()>& done) = 0;
  virtual void RunFor(Duration duration) = 0;
};

std::unique_ptr<TransportWorld> NewMemoryWorld();
std::unique_ptr<TransportWorld> NewPlainTcpWorld();
std::unique_ptr<TransportWorld> NewTlsWorld();
std::unique_ptr<TransportWorld> NewShmWorld();

// A learner that records its callbacks.
class Recorder final : public PeerHandler {
 public:
  Recorder(TransportWorld& world, const LearnerId& learner)
      : id(learner), transport(world.NewTransport(learner)) {
    transport->SetHandler(this);
  }

  Member AsMember() const { return {.id = id, .address = transport->address()}; }
  void Connect(const Recorder& peer) { transport->Connect(peer.AsMember()); }
  bool ConnectedTo(const Recorder& peer) const { return transport->Connected(peer.id); }

  void OnPeerConnected(const LearnerId& peer) override { connected.push_back(peer); }
  void OnFrame(const LearnerId& peer, Frame frame) override {
    if (on_frame) on_frame(peer, frame);
    frames.emplace_back(peer, std::move(frame));
  }
  void OnPeerLost(const LearnerId& peer, const PeerLoss& loss) override {
    lost.push_back(peer);
    losses.push_back(loss);
  }

  const LearnerId id;
  std::unique_ptr<PeerTransport> transport;
  std::function<void(const LearnerId& peer, const Frame& frame)> on_frame;
  std::vector<LearnerId> connected;
  std::vector<LearnerId> lost;
  std::vector<PeerLoss> losses;
  std::vector<std::pair<LearnerId, Frame>> frames;
};

LearnerId Learner(int number);
Frame FrameOfTick(Tick tick, std::string_view text = "");
std::string TextOf(const Frame& frame);

}  // namespace pliant
