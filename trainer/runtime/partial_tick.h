#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "trainer/runtime/compute.h"

namespace pliant {

// What a learner has computed of the tick after those that it has applied. It outlives a tick that
// is aborted: the next membership begins with the same one, and need not compute it again.
class PartialTick {
 public:
  // Of `own`, those that are still to be computed. They are what is added next.
  const std::vector<int>& Ask(const std::vector<int>& own);
  // What was computed of the shards that were asked for last, of a tick over `logical_shards`.
  void Add(TickKind kind, int logical_shards, const TickOutput& output);
  // Compute may use its buffers again.
  void Clear();

  bool IsFinished(int shard) const;
  const ShardSums& SumsOf(int shard) const;  // IsFinished(shard)
  // Over the finished shards, none within another. Those of an evaluation have no sum.
  const std::vector<HeldNode>& nodes() const { return nodes_; }
  std::vector<NodeIndex> node_indices() const;
  const Bytes& buffers() const { return buffers_; }  // of shard 0
  // How many shards of the last Ask were finished before it.
  std::size_t shards_kept() const { return shards_kept_; }

 private:
  std::vector<int> asked_;  // in their order
  std::size_t shards_kept_ = 0;
  std::vector<std::optional<ShardSums>> sums_;  // by shard
  std::vector<HeldNode> nodes_;
  Bytes buffers_;
};

}  // namespace pliant
