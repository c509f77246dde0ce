#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "trainer/runtime/compute.h"

namespace pliant {

// The computed part of the tick after the applied ones. It outlives an aborted tick: the next
// membership begins with the same tick, and need not compute this part again.
class PartialTick {
 public:
  // Returns the shards of `own` that are still to be computed. The next Add is for them.
  const std::vector<int>& Ask(const std::vector<int>& own);
  // Adds what was computed of the shards of the last Ask, in a tick over `logical_shards` shards.
  void Add(TickKind kind, int logical_shards, const TickOutput& output);
  // Releases the memory, which Compute may use again.
  void Clear();

  bool IsFinished(int shard) const;
  const ShardResult& ResultOf(int shard) const;  // IsFinished(shard)
  // Nodes over the finished shards; none contains another. Those of an evaluation have no sum.
  const std::vector<HeldNode>& nodes() const { return nodes_; }
  std::vector<NodeIndex> node_indices() const;
  const Bytes& buffers() const { return buffers_; }  // written by shard 0
  // How many shards of the last Ask were finished before it.
  std::size_t shards_kept() const { return shards_kept_; }

 private:
  std::vector<int> asked_;  // what the last Ask returned, in order
  std::size_t shards_kept_ = 0;
  std::vector<std::optional<ShardResult>> results_;  // by shard
  std::vector<HeldNode> nodes_;
  Bytes buffers_;
};

}  // namespace pliant
