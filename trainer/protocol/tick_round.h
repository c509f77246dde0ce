#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/tree.h"
#include "trainer/data/noise_window.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/program.h"
#include "trainer/protocol/rounds_report.h"
#include "trainer/protocol/spot_check.h"
#include "trainer/protocol/state_check.h"

namespace pliant {

// The end of a tick, as one member sends it to all others. No member waits for the trailer of one
// that catches up; that trailer reports how far it has come.
struct Trailer {
  struct Shard {
    int shard = 0;
    ShardSums sums;
    double gradient_square = 0;  // as in ShardResult
    bool operator==(const Shard&) const = default;
  };
  std::vector<Shard> shards;  // computed by the sender
  bool save = false;          // from rank 0: all members write a checkpoint after this tick
  // The sender must leave, and no coordinator arranges it: when all members set this, they write a
  // checkpoint and leave.
  bool may_drain = false;
  std::optional<int> doublings;         // from rank 0: of the batch in the next epoch
  std::optional<Membership> announced;  // to switch to, at the end of this tick
  std::optional<StateDigest> state;     // of the state before this tick, at intervals
  // The result of the tick's SpotCheck, from its owner and its checker (DigestOfShard).
  std::optional<std::uint64_t> checked_shard;
  bool in_sync = true;            // it holds the state before this tick; else it catches up
  std::vector<int> came_in_sync;  // ranks that reported to the sender that they are in sync
  std::optional<RoundsReport> rounds;
  bool operator==(const Trailer&) const = default;
};

Bytes EncodeTrailer(const Trailer& trailer);
Result<Trailer> DecodeTrailer(std::span<const std::byte> bytes);

// The result of a completed tick, equal on all members.
struct TickOutcome {
  ShardSums sums;              // over all shards, along the tree
  bool mixes_weights = false;  // some shards have a weight, and others have samples only
  ShardSpread spread;          // in a measured tick
  bool save = false;
  bool may_drain = false;
  std::optional<int> doublings;
  std::optional<Membership> announced;
  std::vector<int> differing;                       // ranks whose state is not that of the others
  std::optional<SpotCheck> unequal;                 // the owner and the checker differ
  std::vector<int> came_in_sync;                    // ranks that have caught up, ascending
  std::vector<std::optional<RoundsReport>> rounds;  // by rank
};

// Sums in double along the tree over shards, so that the result does not depend on the order of
// arrival.
ShardSums SumShards(std::span<const ShardSums> by_shard);
// Whether some of the shards that have samples have a weight, and others none.
bool MixesWeights(std::span<const ShardSums> by_shard);

// Collects the parts of one tick other than the gradient: trailers and the buffers of shard 0. One
// object serves all ticks in turn.
class TickRound {
 public:
  // `needs_buffers`: shard 0 writes buffers in this tick. `in_sync` is by rank.
  void Begin(const ShardMap& map, int self, bool needs_buffers, const std::vector<bool>& in_sync);

  void OnLocal(const Trailer& trailer, Bytes buffers);
  // kInvalid if `rank` should not have sent it.
  Status OnTrailer(int rank, const Trailer& trailer);
  Status OnBuffers(int rank, Bytes buffers);

  bool local_done() const { return received_[static_cast<std::size_t>(self_)]; }
  bool done() const { return missing_ == 0 && (!needs_buffers_ || buffers_.has_value()); }
  // Both require done(). Outcome() lacks the spread and `unequal`.
  TickOutcome Outcome() const;
  const std::vector<double>& gradient_squares() const { return gradient_squares_; }  // by shard
  Bytes buffers() const { return buffers_.value_or(Bytes{}); }
  int buffers_rank() const { return buffers_rank_; }  // the rank that computes shard 0
  // Whether both ranks have reported the shard, and differ.
  bool AreUnequal(const SpotCheck& check) const;
  // Names the difference between the most common state and that of a rank of Outcome().differing.
  // `shape` is the state of all.
  StateMismatch MismatchOf(int rank, const StateDict& shape) const;
  const std::vector<int>& shards_of(int rank) const {
    return shards_of_rank_[static_cast<std::size_t>(rank)];
  }

 private:
  void Take(int rank, const Trailer& trailer);

  int self_ = 0;
  ShardMap map_;
  std::vector<std::vector<int>> shards_of_rank_;  // of map_
  int buffers_rank_ = 0;                          // from map_
  bool needs_buffers_ = false;
  std::vector<bool> received_;  // by rank
  std::vector<bool> in_sync_;
  int missing_ = 0;
  std::vector<ShardSums> sums_;           // by shard
  std::vector<double> gradient_squares_;  // by shard
  std::optional<Bytes> buffers_;
  bool save_ = false;
  bool may_drain_ = true;
  std::optional<int> doublings_;
  std::optional<Membership> announced_;
  std::vector<std::optional<StateDigest>> states_;            // by rank
  std::vector<std::optional<std::uint64_t>> checked_shards_;  // by rank
  std::set<int> came_in_sync_;
  std::vector<std::optional<RoundsReport>> rounds_;  // by rank
};

}  // namespace pliant
