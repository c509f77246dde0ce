#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/collective/tree.h"

namespace pliant {

// left + right, elementwise in fp32. `out` may be `left` or `right`.
void AddFloats(std::span<const float> left, std::span<const float> right, std::span<float> out);

// Finishes the tree over nodes that together cover all shards, in one pass over memory: every input
// is read once, the result is written once, and intermediate sums stay in the cache.
class TreeSum {
 public:
  TreeSum() = default;
  // The nodes are the blocks of `map`, which is complete.
  explicit TreeSum(const ShardMap& map);

  // In the order of their first shards: the order of the inputs of Sum.
  const std::vector<NodeIndex>& nodes() const { return nodes_; }
  // The index of a node in nodes(); -1 when it is none of them.
  int IndexOf(NodeIndex node) const;

  // out[i] = (sum along the tree)[i] / divisor. `inputs` are in the order of nodes(); all have the
  // size of `out`, and none overlaps with it.
  void Sum(std::span<const std::span<const float>> inputs, float divisor, std::span<float> out);

 private:
  // Operands below nodes_.size() are inputs; the others are scratch rows.
  struct Addition {
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    std::uint32_t out = 0;
  };
  std::uint32_t Plan(NodeIndex node, std::uint32_t depth);

  static constexpr std::size_t kChunk = 2048;  // floats: a row of 8 KiB

  std::vector<NodeIndex> nodes_;
  std::vector<Addition> additions_;  // children before parents
  std::vector<float> scratch_;       // a row for each level of the tree
};

}  // namespace pliant
