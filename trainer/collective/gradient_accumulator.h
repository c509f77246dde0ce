#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/tree.h"

namespace pliant {

// A node of the tree that this learner finished: the sum over the shards below it.
struct HeldNode {
  NodeIndex node = 0;
  FloatBuffer sum;
};

// Sums one learner's leaves (gradients of the sum over a shard's samples) as they are computed,
// like a binary counter: two siblings become their parent at once. So k shards need ⌊log2 k⌋ + 1
// buffers, and nothing is allocated while they last.
//
// A tick: Begin; then for every shard of the rank, in order: write to Leaf(), Accumulate(). Where
// there is a left sibling to which the leaf is added next, whoever writes the leaf may write the
// sum of both in its place. A shard that completes a block is folded bucket by bucket, while what
// is left of it is still computed. One thread at a time; frames made of what is finished may live
// on elsewhere.
class GradientAccumulator {
 public:
  // Reserves what `max_shards` shards on this learner need. More shards still work, by allocation.
  GradientAccumulator(std::size_t elements, int max_shards, MemorySource& memory = HeapMemory());

  // Has pages behind what `shards` of them need. Before the first Begin.
  Status Populate(int shards);
  static std::size_t BytesFor(std::size_t elements, int shards);

  using OnBucket = std::function<void(std::uint32_t bucket)>;

  // Drops what is held and starts over with these blocks of shards (one rank's part of a ShardMap).
  void Begin(int logical_shards, std::span<const ShardBlock> blocks, const BucketSizes& sizes);

  // The shard that is wanted next; none left when done().
  int next_shard() const;
  bool done() const { return block_ == blocks_.size(); }
  // Where its gradient goes: all elements are to be written.
  std::span<float> Leaf() { return leaf_.view(); }
  // What the leaf is added to, if it is another leaf, and not by AccumulateReady; else empty.
  std::span<const float> left_sibling() const;

  const BucketLayout& buckets() const { return layout_; }
  // Whether the leaf is its block's last: all sums of the block are complete with it.
  bool completes_block() const { return shard_in_block_ + 1 == blocks_[block_].count; }
  // These elements of such a leaf are final; none is said twice. Every bucket of which all are is
  // taken into the sums and named: there, the block's node is final, too.
  void AccumulateReady(ElementRange range, const OnBucket& on_bucket);
  // The same for all that was not said yet.
  void AccumulateRest(const OnBucket& on_bucket);
  // Such a leaf's block; its sum is final where it was folded.
  HeldNode block_node() const;

  // The leaf is final as a whole, and is taken into the sums, except for what was already. Returns
  // the node of the block that it completed, or 0. An empty shard is a leaf of zeros: it is added
  // like any other. `added`: it holds the sum with its left sibling already.
  NodeIndex Accumulate(bool added = false);

  // The finished blocks, by their first shard: not written again before the next Begin.
  const std::vector<HeldNode>& finished() const { return finished_; }
  // All that was taken into the sums: the finished blocks and what there is of the one under way.
  // Buffers that are held when the next Begin comes are not written again; others take their place.
  void CopySums(std::vector<HeldNode>& to) const;

 private:
  void NextLeaf();
  void FoldBucket(ElementRange range);

  int logical_shards_ = 1;
  BufferPool pool_;
  std::vector<FloatBuffer> spare_;  // taken from the pool for this tick, not in use
  std::vector<ShardBlock> blocks_;  // of this tick
  std::size_t block_ = 0;           // the one under way
  int shard_in_block_ = 0;
  FloatBuffer leaf_;
  BucketLayout layout_;
  std::vector<std::size_t> not_ready_;  // elements of the leaf, by bucket; a block's last leaf only
  std::vector<HeldNode> stack_;         // of the block under way: left siblings, larger ones first
  std::vector<HeldNode> finished_;
};

}  // namespace pliant
