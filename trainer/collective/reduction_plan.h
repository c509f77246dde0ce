#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/collective/buckets.h"
#include "trainer/collective/tree.h"
#include "trainer/collective/tree_levels.h"

namespace pliant {

// Piece `piece` of `elements` cut into `pieces`, on boundaries of cache lines (16 floats); sizes
// differ by at most one line, and pieces of a short vector may be empty.
ElementRange PieceOf(std::size_t elements, int pieces, int piece);

// One rank's part in summing the gradients of all ranks, whatever carries them: which parts it
// sends, receives and adds up. Reduction carries it out over frames, GradientRounds over devices.
//
// The vector is cut into buckets, and every bucket into one piece for each rank that computes. A
// rank that computes nothing finishes no piece, so no rank waits for it. Every bucket passes
// through the same stages:
//   1. Where hosts have several ranks: nodes to the relay of the piece, which adds them up
//      (HostPlan).
//   2. Nodes to the rank that finishes the piece: the tree, divided by the number of samples.
//   3. The mean from there to its own host, and to one rank of each other host.
//   4. The mean from there to the rest of that host.
//
// All ranks derive their plans from the same map: each send has its receive, and a pair of ranks
// has its transfers of a stage in the same order on both sides.
class ReductionPlan {
 public:
  // In place of a node: the root, divided by the number of samples.
  static constexpr NodeIndex kMean = 0;

  struct Part {
    NodeIndex node = 0;
    int piece = 0;  // the rank that finishes it
    auto operator<=>(const Part&) const = default;
  };
  struct Transfer {
    int rank = 0;  // the other one
    Part part;
    bool operator==(const Transfer&) const = default;
  };
  struct Addition {
    Part sum;
    std::vector<NodeIndex> nodes;  // of the same piece, in the order of their first shards
    TreeLevels levels;             // of them
  };
  struct Stage {
    // In turn, beginning after the sender's own piece, so that not all send to rank 0 first.
    std::vector<Transfer> sends;
    std::vector<Transfer> receives;
    std::vector<Addition> additions;  // afterwards
  };

  // `map` is complete; `host_of_rank` as for HostPlan.
  ReductionPlan(const ShardMap& map, const std::vector<int>& host_of_rank, int self);

  int self() const { return self_; }
  int world_size() const { return static_cast<int>(piece_of_rank_.size()); }
  const std::vector<Stage>& stages() const { return stages_; }
  // Stage s of bucket b belongs to round b + s: one bucket's nodes and the previous one's means
  // travel together.
  std::size_t rounds(std::uint32_t buckets) const { return buckets + stages_.size() - 1; }
  // The nodes that this rank computes itself.
  const std::vector<NodeIndex>& own() const { return own_; }
  // How many shards the busiest rank computes.
  int most_shards() const { return most_shards_; }
  // The parts that are neither own nodes nor means: the rank needs memory for each, which holds one
  // bucket's part at a time.
  const std::vector<Part>& held() const { return held_; }
  std::optional<std::size_t> HeldIndex(const Part& part) const;

  // Where a piece of a bucket lies in the gradient. It may be empty; then it is not transferred.
  ElementRange RangeOf(ElementRange bucket, int piece) const;
  // The most elements of a piece of a bucket with so many elements.
  std::size_t MaxPiece(std::size_t bucket) const;

 private:
  int self_ = 0;
  std::vector<NodeIndex> own_;
  int most_shards_ = 0;
  std::vector<Stage> stages_;
  std::vector<Part> held_;          // sorted
  std::vector<int> piece_of_rank_;  // -1: none
  int pieces_ = 0;
};

// The plan of the last map, hosts and rank: most ticks have those of the tick before.
class LastReductionPlan {
 public:
  std::shared_ptr<const ReductionPlan> For(const ShardMap& map,
                                           const std::vector<int>& host_of_rank, int self);

 private:
  ShardMap map_;
  std::vector<int> host_of_rank_;
  std::shared_ptr<const ReductionPlan> plan_;
};

}  // namespace pliant
