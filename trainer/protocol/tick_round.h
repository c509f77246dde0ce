#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/tree.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/program.h"

namespace pliant {

// The end of a tick, as one member sends it to all others. Nobody waits for that of a member that
// catches up; it says how far that has come.
struct Trailer {
  struct Shard {
    int shard = 0;
    ShardSums sums;
    bool operator==(const Shard&) const = default;
  };
  std::vector<Shard> shards;  // that the sender computed
  bool save = false;          // from rank 0: all of them write a checkpoint after this tick
  // It has to leave, and nobody arranges it: when all say so they write a checkpoint and go.
  bool may_drain = false;
  std::optional<Membership> announced;          // to switch to, at the end of this tick
  std::optional<std::uint64_t> state_checksum;  // of the state before this tick, now and then
  bool in_sync = true;            // it holds the state before this tick; if not, it catches up
  std::vector<int> came_in_sync;  // ranks of which the sender has heard that they do now
  bool operator==(const Trailer&) const = default;
};

Bytes EncodeTrailer(const Trailer& trailer);
Result<Trailer> DecodeTrailer(std::span<const std::byte> bytes);

// What a completed tick says, equal on all members.
struct TickOutcome {
  ShardSums sums;  // over all shards, along the tree
  bool save = false;
  bool may_drain = false;
  std::optional<Membership> announced;
  std::vector<int> differing;     // ranks whose state is not that of the others
  std::vector<int> came_in_sync;  // ranks that have caught up, ascending
};

// The sums on whose order nothing may depend: in double, along the tree over shards.
ShardSums SumShards(std::span<const ShardSums> by_shard);

// Gathers what belongs to one tick beside the gradient: trailers and the buffers of shard 0. One is
// used for tick after tick.
class TickRound {
 public:
  // `needs_buffers`: shard 0 writes some in this tick. `in_sync`, by rank.
  void Begin(const ShardMap& map, int self, bool needs_buffers, const std::vector<bool>& in_sync);

  void OnLocal(const Trailer& trailer, Bytes buffers);
  // kInvalid: not what `rank` has to send.
  Status OnTrailer(int rank, const Trailer& trailer);
  Status OnBuffers(int rank, Bytes buffers);

  bool local_done() const { return heard_[static_cast<std::size_t>(self_)]; }
  bool done() const { return missing_ == 0 && (!needs_buffers_ || buffers_.has_value()); }
  TickOutcome Outcome() const;  // done()
  Bytes buffers() const { return buffers_.value_or(Bytes{}); }
  int buffers_rank() const { return buffers_rank_; }  // who computes shard 0
  const std::vector<int>& shards_of(int rank) const {
    return shards_of_rank_[static_cast<std::size_t>(rank)];
  }

 private:
  void Take(int rank, const Trailer& trailer);

  int self_ = 0;
  ShardMap map_;
  std::vector<std::vector<int>> shards_of_rank_;  // of map_
  int buffers_rank_ = 0;                          // likewise
  bool needs_buffers_ = false;
  std::vector<bool> heard_;  // by rank
  std::vector<bool> in_sync_;
  int missing_ = 0;
  std::vector<ShardSums> sums_;  // by shard
  std::optional<Bytes> buffers_;
  bool save_ = false;
  bool may_drain_ = true;
  std::optional<Membership> announced_;
  std::vector<std::optional<std::uint64_t>> state_checksums_;  // by rank
  std::set<int> came_in_sync_;
};

}  // namespace pliant
