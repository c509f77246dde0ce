#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <vector>

#include "trainer/collective/buckets.h"
#include "trainer/collective/tree.h"
#include "trainer/collective/tree_levels.h"

namespace pliant {

// One rank's part in summing a gradient in rounds: in a round all ranks transfer parts of buckets
// at once, then each adds up the parts that it has. Every bucket passes through the same stages,
// and stage s of bucket b belongs to round b + s: one bucket's nodes and the previous one's means
// travel together. All ranks derive their plans from the same map: each send has its receive, and a
// pair of ranks has its transfers of a round in the same order on both sides.
//
// The nodes, pieces and relays are those of Reduction, and so are the bits:
//   1. Where hosts have several ranks: nodes to the relay of the piece, which adds them up.
//   2. Nodes to the rank that finishes the piece: the tree, divided by the number of samples.
//   3. The mean from there to its own host, and to one rank of each other host.
//   4. The mean from there to the rest of that host.
class RoundPlan {
 public:
  // 16 and 64 MiB: each round costs a launch, and the first one begins early.
  static constexpr BucketSizes kBucketSizes = {.first = std::size_t{4} << 20,
                                               .rest = std::size_t{16} << 20};
  // The most nodes of a map for which devices have plans: a kernel adds so many.
  static constexpr std::size_t kMaxNodes = 128;

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
    std::vector<Transfer> sends;
    std::vector<Transfer> receives;
    std::vector<Addition> additions;  // afterwards
  };

  // `map` is complete; `host_of_rank` as for HostPlan.
  RoundPlan(const ShardMap& map, const std::vector<int>& host_of_rank, int self);

  const std::vector<Stage>& stages() const { return stages_; }
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
  std::vector<NodeIndex> own_;
  int most_shards_ = 0;
  std::vector<Stage> stages_;
  std::vector<Part> held_;          // sorted
  std::vector<int> piece_of_rank_;  // -1: none
  int pieces_ = 0;
};

}  // namespace pliant
