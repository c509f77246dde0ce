#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/tree.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/position.h"

namespace pliant {

// What a learner brings into a membership.
struct StateSummary {
  Position position;  // of its program's state
  // Nothing is ahead of what the members hold: it came here by a boundary that it committed, or it
  // is rank 0 and has looked at the checkpoints.
  bool current = false;
  // What it finished of the tick after that position, before that was given up: nodes of the tree,
  // none of which contains another.
  std::vector<NodeIndex> finished;
  bool operator==(const StateSummary&) const = default;
};

Bytes EncodeStateSummary(const StateSummary& holding);
// kInvalid, too, when it is of a tick that the job has not, or has nodes that a tree over so many
// shards has not. No shards: nothing can be finished of a tick, as in Statistical mode, where
// another membership cuts it otherwise.
Result<StateSummary> DecodeStateSummary(std::span<const std::byte> bytes, Tick total_ticks,
                                        int logical_shards);

// How a membership opens, seen by one of its members: all tell each other what they hold; the
// furthest state, of theirs and of the checkpoints (of those with as many ticks the one of the
// newest membership), is the one to start from. Rank 0 takes it from the lowest rank that holds it;
// ticks begin when it has, with what is left of the one that was given up. Who else does not hold
// it catches up: the state comes to it while the others go on. Without I/O: it is told what
// happens, and says what to do.
class Opening {
 public:
  Opening(int world_size, int self, StateSummary own);

  void OnOpen(int rank, const StateSummary& holding);  // again: what counts is the newest
  void OnOpened(int rank);                             // is ready to begin
  void SetOwn(const StateSummary& own);  // after loading it, from a checkpoint or a peer
  // The link to `rank` broke. False: too often to be tried once more.
  bool OnLinkLost(int rank);

  enum class Next {
    kWait,      // for others
    kRestore,   // this one, rank 0: look for a checkpoint that is ahead of all, or make a first
                // state
    kFetch,     // this one, rank 0: the state of source()
    kSayReady,  // to the others, once
    kBegin,     // all are
  };
  Next next() const;
  int source() const;  // with kFetch
  // What the furthest of those who have a state holds.
  std::optional<StateSummary> furthest() const;
  // By rank: what is finished of the tick that the membership begins with. The same on all members,
  // with kBegin.
  std::vector<std::vector<NodeIndex>> finished() const;
  // By rank, likewise: whether it holds the state that ticks begin with. All others catch up.
  std::vector<bool> in_sync() const;

  void SetSaidReady() { said_ready_ = true; }
  bool said_ready() const { return said_ready_; }
  const StateSummary& own() const {
    return peers_[static_cast<std::size_t>(self_)].holding.value();
  }
  const std::optional<StateSummary>& holding(int rank) const {
    return peers_[static_cast<std::size_t>(rank)].holding;
  }

 private:
  struct Peer {
    std::optional<StateSummary> holding;
    bool opened = false;
    int links_lost = 0;
  };
  std::optional<int> Furthest() const;  // the lowest rank that holds the furthest state

  int self_;
  bool said_ready_ = false;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace pliant
