#include "trainer/collective/memory_transport.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pliant {
namespace {

constexpr Duration kRedialDelay = std::chrono::milliseconds(50);
constexpr const char* kClosed = "the connection was closed";

}  // namespace

class MemoryTransport final : public PeerTransport {
 public:
  MemoryTransport(MemoryNetwork& network, LearnerId self)
      : network_(network), self_(std::move(self)) {}

  ~MemoryTransport() override {
    if (!present()) return;
    network_.transports_.erase(self_);
    for (const auto& [peer, side] : sides_)
      if (side.connection != 0)
        network_.ReportLoss(self_, peer, side.connection, {.reason = kClosed});
  }

  void SetHandler(PeerHandler* handler) override { handler_ = handler; }
  std::string address() const override { return "memory:" + ToString(self_); }

  void Connect(const Member& peer) override {
    CHECK(handler_ != nullptr, "SetHandler comes first");
    CHECK(peer.id != self_, "a learner does not connect to itself");
    Side& side = sides_[peer.id];
    if (!present() || side.wanted) return;
    side.wanted = true;
    if (self_ < peer.id) return;
    side.dial = ++network_.last_number_;
    network_.Dial(self_, peer.id, side.dial);
  }

  void Disconnect(const LearnerId& peer) override {
    const auto found = sides_.find(peer);
    if (!present() || found == sides_.end()) return;
    Side& side = found->second;
    if (side.connection != 0)
      network_.ReportLoss(self_, peer, side.connection, {.reason = kClosed});
    side = {};
  }

  bool Connected(const LearnerId& peer) const override {
    const auto found = sides_.find(peer);
    return found != sides_.end() && found->second.connection != 0;
  }

  void Send(const LearnerId& peer, Frame frame) override {
    if (!present() || !Connected(peer)) return;
    Side& side = sides_[peer];
    const TimePoint now = network_.loop_.Now();
    side.last_arrival = std::max(side.last_arrival, now + network_.delay_of_(self_, peer)) +
                        network_.TimeOf(frame.payload.view.size());
    network_.After(side.last_arrival - now,
                   [&network = network_, self = self_, peer, connection = side.connection,
                    frame = std::move(frame)]() mutable {
                     MemoryTransport* const to = network.Find(peer);
                     if (to == nullptr || network.Faulty(self, peer)) return;
                     const Side& at_peer = to->sides_[self];
                     if (at_peer.connection == connection && !at_peer.broken)
                       to->handler_->OnFrame(self, std::move(frame));
                   });
  }

 private:
  friend class MemoryNetwork;

  // This learner's side of the connection with a peer. Both sides have the same number; events with
  // an older number are dropped.
  struct Side {
    bool wanted = false;
    std::uint64_t dial = 0;        // the current series of tries; earlier ones are ignored
    std::uint64_t connection = 0;  // 0: none
    bool broken = false;           // nothing arrives any longer, and the loss is being reported
    TimePoint last_arrival;        // of frames sent to the peer: later ones do not arrive earlier
  };

  bool present() const { return network_.Find(self_) == this; }

  void Lose(const LearnerId& peer, std::uint64_t connection, const PeerLoss& loss) {
    Side& side = sides_[peer];
    if (side.connection != connection) return;
    side = {};
    handler_->OnPeerLost(peer, loss);
  }

  MemoryNetwork& network_;
  const LearnerId self_;
  PeerHandler* handler_ = nullptr;
  std::map<LearnerId, Side> sides_;
};

MemoryNetwork::MemoryNetwork(EventLoop& loop, DelayOf delay_of)
    : loop_(loop), delay_of_(std::move(delay_of)) {}

MemoryNetwork::~MemoryNetwork() {
  CHECK(transports_.empty(), "transports are gone before their network");
}

std::unique_ptr<PeerTransport> MemoryNetwork::NewTransport(const LearnerId& self) {
  auto transport = std::make_unique<MemoryTransport>(*this, self);
  CHECK(transports_.emplace(self, transport.get()).second, "one transport for each learner");
  return transport;
}

MemoryNetwork::Link MemoryNetwork::LinkOf(const LearnerId& a, const LearnerId& b) {
  return {std::min(a, b), std::max(a, b)};
}

MemoryTransport* MemoryNetwork::Find(const LearnerId& learner) const {
  const auto found = transports_.find(learner);
  return found == transports_.end() ? nullptr : found->second;
}

Duration MemoryNetwork::TimeOf(std::size_t bytes) const {
  if (!bytes_per_second) return Duration::zero();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / *bytes_per_second));
}

void MemoryNetwork::After(Duration delay, std::function<void()> task) {
  loop_.PostAfter(delay, lifetime_.Guard(std::move(task)));
}

void MemoryNetwork::Dial(const LearnerId& from, const LearnerId& to, std::uint64_t dial) {
  After(delay_of_(from, to), [=, this] { OnDialArrived(from, to, dial); });
}

void MemoryNetwork::OnDialArrived(const LearnerId& from, const LearnerId& to, std::uint64_t dial) {
  MemoryTransport* const dialler = Find(from);
  if (dialler == nullptr || dialler->sides_[to].dial != dial) return;
  MemoryTransport* const acceptor = Find(to);
  MemoryTransport::Side* const side = acceptor == nullptr ? nullptr : &acceptor->sides_[from];
  if (side == nullptr || Faulty(from, to) || !side->wanted || side->connection != 0) {
    After(kRedialDelay, [=, this] { Dial(from, to, dial); });
    // The peer dials only if it has lost the connection that this side still has.
    if (side != nullptr && !Faulty(from, to) && side->connection != 0)
      acceptor->Lose(from, side->connection, {.reason = "the peer has lost the connection"});
    return;
  }
  const std::uint64_t connection = ++last_number_;
  const Duration back = delay_of_(to, from);
  side->connection = connection;
  side->last_arrival = loop_.Now() + back;  // its frames arrive after the answer to the dial
  After(back, [=, this] { OnAccepted(from, to, dial, connection); });
  acceptor->handler_->OnPeerConnected(from);
}

void MemoryNetwork::OnAccepted(const LearnerId& from, const LearnerId& to, std::uint64_t dial,
                               std::uint64_t connection) {
  MemoryTransport* const dialler = Find(from);
  if (dialler == nullptr || dialler->sides_[to].dial != dial) {
    ReportLoss(from, to, connection, {.reason = kClosed});
    return;
  }
  MemoryTransport* const acceptor = Find(to);
  const bool stands = acceptor != nullptr && !Faulty(from, to) &&
                      acceptor->sides_[from].connection == connection &&
                      !acceptor->sides_[from].broken;
  if (!stands) {
    After(kRedialDelay, [=, this] { Dial(from, to, dial); });
    return;
  }
  dialler->sides_[to].connection = connection;
  dialler->handler_->OnPeerConnected(to);
}

void MemoryNetwork::ReportLoss(const LearnerId& from, const LearnerId& to, std::uint64_t connection,
                               PeerLoss loss) {
  After(delay_of_(from, to), [=, this, loss = std::move(loss)] {
    MemoryTransport* const transport = Find(to);
    // A silent link does not report a loss either; the end of the fault does.
    const auto fault = faults_.find(LinkOf(from, to));
    if (fault != faults_.end() && fault->second == LinkFault::kSilent) return;
    if (transport != nullptr) transport->Lose(from, connection, loss);
  });
}

void MemoryNetwork::Break(const LearnerId& a, const LearnerId& b, const std::string& reason) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    MemoryTransport* const transport = Find(to);
    if (transport == nullptr) continue;
    MemoryTransport::Side& side = transport->sides_[from];
    if (side.connection == 0) continue;
    side.broken = true;
    ReportLoss(from, to, side.connection, {.reason = reason});
  }
}

void MemoryNetwork::Garble(const LearnerId& from, const LearnerId& to) {
  MemoryTransport* const reader = Find(to);
  if (reader == nullptr) return;
  MemoryTransport::Side& side = reader->sides_[from];
  if (side.connection == 0 || std::exchange(side.broken, true)) return;
  ReportLoss(from, to, side.connection, {.reason = "the peer sent bytes that are not a frame"});
  ReportLoss(to, from, side.connection, {.reason = kClosed});
}

void MemoryNetwork::Cut(const LearnerId& a, const LearnerId& b) {
  faults_[LinkOf(a, b)] = LinkFault::kCut;
  Break(a, b, "the link was cut");
}

void MemoryNetwork::Silence(const LearnerId& a, const LearnerId& b) {
  faults_[LinkOf(a, b)] = LinkFault::kSilent;
}

void MemoryNetwork::Mend(const LearnerId& a, const LearnerId& b) {
  const auto fault = faults_.find(LinkOf(a, b));
  if (fault == faults_.end()) return;
  const bool silent = fault->second == LinkFault::kSilent;
  faults_.erase(fault);
  if (silent) Break(a, b, "frames were lost");
}

void MemoryNetwork::Vanish(const LearnerId& learner) { transports_.erase(learner); }

}  // namespace pliant
