#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/tree.h"
#include "trainer/data/schedule.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/position.h"

namespace pliant {

// The state that a learner brings into a membership.
struct StateSummary {
  Position position;  // of its program's state
  // No state is ahead of the members' states: this learner came through a boundary that it
  // committed, or it is rank 0 and has checked the checkpoints.
  bool current = false;
  // The nodes that it finished of the tick after that position, before that tick was aborted; none
  // of them contains another.
  std::vector<NodeIndex> finished;
  bool operator==(const StateSummary&) const = default;
};

Bytes EncodeStateSummary(const StateSummary& holding);
// kInvalid also if a training by `schedule` cannot have this position: its segments, ticks or noise
// window, or a segment that its ticks have not decided, or if the tree of its next tick does not
// have one of the nodes. Not bitwise: a tick cannot have finished nodes, because each membership
// splits it differently.
Result<StateSummary> DecodeStateSummary(std::span<const std::byte> bytes, const Schedule& schedule,
                                        bool bitwise);

// The opening of a membership, seen by one of its members. All send each other their state
// summaries. Ticks start from the furthest state among them and the checkpoints (of states with
// equally many ticks, the one of the newest membership; if members disagree on its noise or
// batches, what most of them say). Rank 0 fetches it from the lowest rank that holds it; ticks
// begin once it has it, with the rest of the aborted tick. Every other member without it catches
// up: it receives the state while the others continue. Without I/O: the owner reports events, and
// carries out next().
class Opening {
 public:
  Opening(int world_size, int self, StateSummary own);

  void OnOpen(int rank, const StateSummary& holding);  // a later one replaces it
  void OnOpened(int rank);                             // `rank` is ready to begin
  void SetOwn(const StateSummary& own);                // after a load from a checkpoint or a peer
  // The link to `rank` broke. Returns false if it broke too often to be tried once more.
  bool OnLinkLost(int rank);

  enum class Next {
    kWait,  // for others
    // This member, rank 0, looks for a checkpoint that is ahead of all, or creates a first state.
    kRestore,
    kFetch,     // this member, rank 0, fetches the state of source()
    kSayReady,  // this member reports that it is ready to the others, once
    kBegin,     // all are ready
  };
  Next next() const;
  int source() const;  // with kFetch
  // The summary of the furthest state among the members.
  std::optional<StateSummary> furthest() const;
  // By rank: the finished nodes of the tick that the membership begins with. The same on all
  // members. Valid with kBegin.
  std::vector<std::vector<NodeIndex>> finished() const;
  // By rank, likewise: whether it holds the state from which ticks begin. All others catch up.
  std::vector<bool> in_sync() const;

  void SetReportedReady() { reported_ready_ = true; }
  bool reported_ready() const { return reported_ready_; }
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
  bool reported_ready_ = false;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace pliant
