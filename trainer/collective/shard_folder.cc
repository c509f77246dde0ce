#include "trainer/collective/shard_folder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "trainer/collective/tree_sum.h"

namespace pliant {
namespace {

// A block of 2^a shards takes a partial sum for each of its a levels, and the leaf.
std::size_t BuffersOfBlock(int shards) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(shards)));
}

}  // namespace

ShardFolder::ShardFolder(int logical_shards, std::size_t elements, int shards_most,
                         MemorySource& memory)
    : logical_shards_(logical_shards), pool_(elements, BuffersOfBlock(shards_most), memory) {}

void ShardFolder::Begin(std::span<const ShardBlock> blocks) {
  finished_.clear();
  stack_.clear();
  spare_.clear();
  leaf_ = {};
  blocks_.assign(blocks.begin(), blocks.end());
  block_ = 0;
  shard_in_block_ = 0;

  // Finished blocks keep one buffer each. With blocks of falling size, as AssignShards makes them,
  // the most is what the first one takes.
  std::size_t buffers = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    buffers = std::max(buffers, i + BuffersOfBlock(blocks[i].count));
  while (spare_.size() < buffers) spare_.push_back(pool_.Take());
  if (!done()) {
    leaf_ = std::move(spare_.back());
    spare_.pop_back();
  }
}

int ShardFolder::next_shard() const {
  CHECK(!done(), "a shard is left");
  return blocks_[block_].first + shard_in_block_;
}

NodeIndex ShardFolder::Fold() {
  HeldNode sum{.node = NodeOf(logical_shards_, {.first = next_shard(), .count = 1}),
               .sum = std::move(leaf_)};
  const NodeIndex block_node = NodeOf(logical_shards_, blocks_[block_]);
  while (sum.node != block_node && !stack_.empty() && stack_.back().node + 1 == sum.node) {
    HeldNode left = std::move(stack_.back());
    stack_.pop_back();
    AddFloats(left.sum.view(), sum.sum.view(), left.sum.view());
    spare_.push_back(std::move(sum.sum));
    sum = {.node = left.node / 2, .sum = std::move(left.sum)};
  }

  const bool finished = sum.node == block_node;
  if (finished) {
    finished_.push_back(std::move(sum));
    ++block_;
    shard_in_block_ = 0;
  } else {
    stack_.push_back(std::move(sum));
    ++shard_in_block_;
  }
  if (!done()) {
    CHECK(!spare_.empty(), "Begin took enough buffers");
    leaf_ = std::move(spare_.back());
    spare_.pop_back();
  }
  return finished ? block_node : 0;
}

std::vector<HeldNode> ShardFolder::sums() const {
  std::vector<HeldNode> all = finished_;
  all.insert(all.end(), stack_.begin(), stack_.end());
  return all;
}

NodeIndex ShardFolder::FoldEmpty() {
  std::ranges::fill(Leaf(), 0.0F);
  return Fold();
}

}  // namespace pliant
