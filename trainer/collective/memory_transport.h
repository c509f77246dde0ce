#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/event_loop.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

class MemoryTransport;

// Learners of one process, connected in memory: for simulations and unit tests. Everything happens
// on one event loop, in an order that follows from the delays alone. Frames are passed without a
// copy; those of one connection keep their order whatever their delays.
class MemoryNetwork {
 public:
  // How long something takes from one learner to the other; asked once for each frame, dial and
  // loss. A simulation draws it from its seed.
  using DelayOf = std::function<Duration(const LearnerId& from, const LearnerId& to)>;

  MemoryNetwork(EventLoop& loop, DelayOf delay_of);
  ~MemoryNetwork();

  // Destroying it is the death of the process: peers lose the connection after a delay. At most one
  // of an id at a time; it is gone before the network.
  std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self);

  // Breaks the connection, if there is one, with all frames under way; both sides lose it after a
  // delay. No new one is made until Mend.
  void Cut(const LearnerId& a, const LearnerId& b);
  // Swallows all frames and dials between the two, and tells nobody. Mend breaks the connection, as
  // TCP would after losing data.
  void Silence(const LearnerId& a, const LearnerId& b);
  void Mend(const LearnerId& a, const LearnerId& b);
  // The machine vanishes: its transport does nothing more, and peers hear nothing.
  void Vanish(const LearnerId& learner);

 private:
  friend class MemoryTransport;
  enum class LinkFault { kCut, kSilent };
  using Pair = std::pair<LearnerId, LearnerId>;  // the lesser id first

  static Pair PairOf(const LearnerId& a, const LearnerId& b);
  bool Faulty(const LearnerId& a, const LearnerId& b, LinkFault fault) const;

  EventLoop& loop_;
  const DelayOf delay_of_;
  std::map<LearnerId, MemoryTransport*> transports_;
  std::map<Pair, LinkFault> faults_;
  std::uint64_t last_connection_ = 0;
};

}  // namespace pliant
