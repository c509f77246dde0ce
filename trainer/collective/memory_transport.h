#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

class MemoryTransport;

// Learners of one process, connected in memory: for simulations and unit tests. Everything happens
// on one event loop, in an order that depends only on the delays. Frames are passed without a copy;
// those of one connection keep their order whatever their delays.
class MemoryNetwork {
 public:
  // The delay from one learner to the other; called once for each frame, dial and loss. A
  // simulation draws it from its seed. A loss may overtake frames, which are lost then.
  using DelayOf = std::function<Duration(const LearnerId& from, const LearnerId& to)>;

  MemoryNetwork(EventLoop& loop, DelayOf delay_of);
  ~MemoryNetwork();

  // The bandwidth from each learner to each other one; nullopt: payloads take no time.
  std::optional<double> bytes_per_second;

  // Destroying it simulates the death of the process: peers lose the connection after a delay. At
  // most one per id at a time; destroyed before the network.
  std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self);

  // Breaks the connection, if there is one, and drops all frames in flight; both sides lose it
  // after a delay. No new connection is made while the fault lasts.
  void Cut(const LearnerId& a, const LearnerId& b);
  // `from` sends bytes that are not a frame: `to` breaks the connection.
  void Garble(const LearnerId& from, const LearnerId& to);
  // Drops all frames and dials between the two without notice. When the fault ends the connection
  // breaks, as TCP would after losing data.
  void Silence(const LearnerId& a, const LearnerId& b);
  void Mend(const LearnerId& a, const LearnerId& b);
  // The machine vanishes: its transport does nothing more, and peers are not notified.
  void Vanish(const LearnerId& learner);

 private:
  friend class MemoryTransport;
  enum class LinkFault { kCut, kSilent };
  using Link = std::pair<LearnerId, LearnerId>;  // the lesser id first

  static Link LinkOf(const LearnerId& a, const LearnerId& b);
  bool Faulty(const LearnerId& a, const LearnerId& b) const {
    return faults_.contains(LinkOf(a, b));
  }
  MemoryTransport* Find(const LearnerId& learner) const;
  Duration TimeOf(std::size_t bytes) const;
  // Runs `task` after `delay` unless the network is gone by then.
  void After(Duration delay, std::function<void()> task);
  void Dial(const LearnerId& from, const LearnerId& to, std::uint64_t dial);
  // The dial arrives at `to`; if `to` accepts it, the answer arrives at `from`.
  void OnDialArrived(const LearnerId& from, const LearnerId& to, std::uint64_t dial);
  void OnAccepted(const LearnerId& from, const LearnerId& to, std::uint64_t dial,
                  std::uint64_t connection);
  void ReportLoss(const LearnerId& from, const LearnerId& to, std::uint64_t connection,
                  PeerLoss loss);
  void Break(const LearnerId& a, const LearnerId& b, const std::string& reason);

  EventLoop& loop_;
  const DelayOf delay_of_;
  std::map<LearnerId, MemoryTransport*> transports_;  // without those that vanished
  std::map<Link, LinkFault> faults_;
  std::uint64_t last_number_ = 0;  // numbers connections and dials
  const Lifetime lifetime_;
};

}  // namespace pliant
