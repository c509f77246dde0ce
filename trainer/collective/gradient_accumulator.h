#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/gradient_arithmetic.h"
#include "trainer/collective/gradient_cells.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/gradient_square.h"
#include "trainer/collective/tree.h"

namespace pliant {

// A node of the tree that this learner finished: the sum over the shards below it.
struct HeldNode {
  NodeIndex node = 0;
  FloatBuffer sum;
};

// Sums one learner's leaves (gradients of the sum over a shard's samples) as they are computed,
// like a binary counter: two siblings become their parent at once. So k shards need ⌊log2 k⌋ + 1
// buffers, and nothing is allocated while these suffice.
//
// A tick: Begin; then for every shard of the rank, in order: write to Leaf(), Accumulate(). If the
// leaf is added to a left sibling next, its writer may write the sum of both instead. A shard that
// completes a block is accumulated bucket by bucket, while the rest of it is still computed. Used
// by one thread at a time; frames made of finished sums may stay in use elsewhere.
//
// Leaves and sums may be on a device. Then the sums are complete when the device is done with what
// was queued, and all addresses here are the device's.
class GradientAccumulator {
 public:
  // Reserves the buffers for `max_shards` shards on this learner. More shards work too, but
  // allocate.
  GradientAccumulator(GradientCells cells, int max_shards, MemorySource& memory = HeapMemory());
  // On `device`, which outlives it. The memory is taken now: std::bad_alloc.
  GradientAccumulator(GradientCells cells, int max_shards, GradientDevice& device);

  // Makes the kernel allocate the pages of the buffers for `shards` shards, in host memory. Call it
  // before the first Begin.
  Status Populate(int shards);
  static std::size_t BytesFor(std::size_t elements, int shards);
  // The cells of a gradient, in which it is measured.
  const GradientCells& cells() const { return *cells_; }

  using OnBucket = std::function<void(std::uint32_t bucket)>;

  // Drops what is held and starts over with these blocks of shards (one rank's part of a ShardMap).
  // `measure`: the square of each leaf is wanted. On a device, whoever wants it measures the leaf
  // before it is accumulated, and buckets are not final before the leaf is.
  void Begin(int logical_shards, std::span<const ShardBlock> blocks, const BucketSizes& sizes,
             bool measure = false);

  // The next shard to compute. Not allowed when done().
  int next_shard() const;
  bool done() const { return block_ == blocks_.size(); }
  // The memory for its gradient: the caller writes all elements.
  std::span<float> Leaf() { return leaf_.view(); }
  // Writes zeros to it.
  void ZeroLeaf() { arithmetic_->Zero(leaf_.view()); }
  // The left leaf, if the program may fuse the addition. Empty: there is none, AccumulateReady adds
  // it, or this leaf is measured before the addition.
  std::span<const float> left_sibling() const;

  const BucketLayout& buckets() const { return layout_; }
  // Whether the leaf is the last of its block: all sums of the block are complete with it.
  bool completes_block() const { return shard_in_block_ + 1 == blocks_[block_].count; }
  // Marks elements of such a leaf as final; each is marked once. Every bucket whose elements are
  // all final is added to the sums and passed to `on_bucket`: there, the block's node is final,
  // too.
  void AccumulateReady(ElementRange range, const OnBucket& on_bucket);
  // The same for all elements that are not marked yet.
  void AccumulateRest(const OnBucket& on_bucket);
  // The node of such a leaf's block; its sum is final where it was accumulated.
  HeldNode block_node() const;

  // The whole leaf is final: adds to the sums what was not added yet. Returns the node of the block
  // that it completed, or 0. An empty shard is a leaf of zeros: it is added like any other.
  // `added`: the leaf already holds the sum with its left sibling.
  NodeIndex Accumulate(bool added = false);
  // |leaf|² of the leaf that was accumulated last. Only if leaves are measured, in host memory.
  double leaf_square() const { return leaf_square_; }

  // The finished blocks, by their first shard. They do not change before the next Begin.
  const std::vector<HeldNode>& finished() const { return finished_; }
  // Copies all sums: the finished blocks and the partial sums of the current one. Buffers that are
  // still held at the next Begin are not written again; others take their place.
  void CopySums(std::vector<HeldNode>& to) const;

 private:
  void NextLeaf();
  void AccumulateBucket(ElementRange range);

  std::unique_ptr<const GradientCells> cells_;  // stays in place when this is moved
  GradientArithmetic* arithmetic_;
  bool on_device_ = false;
  int logical_shards_ = 1;
  BufferPool pool_;
  std::vector<FloatBuffer> spare_;  // taken from the pool for this tick, not in use
  std::vector<ShardBlock> blocks_;  // of this tick
  std::size_t block_ = 0;           // the current one
  int shard_in_block_ = 0;
  FloatBuffer leaf_;
  BucketLayout layout_;
  std::vector<std::size_t> not_ready_;  // elements of the leaf, by bucket; a block's last leaf only
  std::vector<HeldNode> stack_;         // left siblings in the current block, larger ones first
  std::vector<HeldNode> finished_;
  bool measure_ = false;        // each leaf must be seen
  bool measures_here_ = false;  // in host memory
  GradientSquare square_;       // of the leaf
  double leaf_square_ = 0;
  std::vector<std::span<const float>> addends_;  // scratch
};

}  // namespace pliant
