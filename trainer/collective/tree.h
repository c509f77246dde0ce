#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace pliant {

// The fixed binary tree over V logical shards (a power of two) along which gradients are summed:
// node = left + right. Which rank computes which node does not change a bit of the root. Nodes have
// heap numbers: root 1, children 2i and 2i+1, leaf of shard v: V + v.
using NodeIndex = std::uint32_t;

inline constexpr NodeIndex kRootNode = 1;

// The shards [first, first + count) below one node of the tree: count is a power of two that
// divides first.
struct ShardBlock {
  int first = 0;
  int count = 0;
  bool operator==(const ShardBlock&) const = default;
};

NodeIndex NodeOf(int logical_shards, ShardBlock block);
// `node` is between 1 and 2V - 1.
ShardBlock BlockOf(int logical_shards, NodeIndex node);

// Which rank computes which shards. Every shard belongs to one block of one rank. A rank's blocks
// are listed by their first shard; a rank may have none.
struct ShardMap {
  int logical_shards = 0;
  std::vector<std::vector<ShardBlock>> blocks_of_rank;

  bool operator==(const ShardMap&) const = default;
  int world_size() const { return static_cast<int>(blocks_of_rank.size()); }
  // The shards of `rank`, in the order in which it computes them.
  std::vector<int> ShardsOf(int rank) const;
};

// Divides V shards among W ranks. Their numbers differ by at most one (the first V mod W ranks have
// one more). Each number is a sum of distinct powers of two, each power an aligned block; larger
// blocks come before smaller ones, so all are aligned. With W > V the last ranks have none.
ShardMap AssignShards(int logical_shards, int world_size);

// The same among the ranks for which `computes` is true, at least one; the others have none.
ShardMap AssignShardsAmong(int logical_shards, const std::vector<bool>& computes);

// The nodes of all blocks, in the order of their first shards.
std::vector<NodeIndex> NodesOf(const ShardMap& map);

// Whether every shard is in exactly one block, and every block is a node of the tree.
bool IsComplete(const ShardMap& map);

// The tree over one value per shard, written plainly: all other sums must equal it. For the few
// numbers that travel in a trailer (loss, sample counts), where speed does not matter.
template <typename T, typename Add>
T SumTree(std::span<const T> leaves, const Add& add) {
  CHECK(std::has_single_bit(leaves.size()), "the tree has a power of two of leaves");
  if (leaves.size() == 1) return leaves.front();
  const std::size_t half = leaves.size() / 2;
  return add(SumTree(leaves.first(half), add), SumTree(leaves.subspan(half), add));
}

}  // namespace pliant
