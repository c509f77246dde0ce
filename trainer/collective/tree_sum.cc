#include "trainer/collective/tree_sum.h"

#include <algorithm>

#include "base/check.h"
#include "trainer/collective/float_loops.h"

namespace pliant {

void AddFloats(std::span<const float> left, std::span<const float> right, std::span<float> out) {
  CHECK(left.size() == out.size() && right.size() == out.size(), "equal sizes");
  AddInto(out.data(), left.data(), right.data(), out.size());
}

TreeSum::TreeSum(const ShardMap& map) {
  CHECK(IsComplete(map), "the nodes cover all shards");
  for (const auto& blocks : map.blocks_of_rank)
    for (const ShardBlock& block : blocks) nodes_.push_back(NodeOf(map.logical_shards, block));
  std::ranges::sort(nodes_, {},
                    [&](NodeIndex node) { return BlockOf(map.logical_shards, node).first; });
  Plan(kRootNode, 0);
}

int TreeSum::IndexOf(NodeIndex node) const {
  const auto found = std::ranges::find(nodes_, node);
  return found == nodes_.end() ? -1 : static_cast<int>(found - nodes_.begin());
}

// Appends the additions below `node`; returns the operand that holds its sum. A row for each depth
// is enough except for right children: the left sibling's row is still in use then, so a depth has
// two.
std::uint32_t TreeSum::Plan(NodeIndex node, std::uint32_t depth) {
  const int input = IndexOf(node);
  if (input >= 0) return static_cast<std::uint32_t>(input);
  const std::uint32_t left = Plan(2 * node, depth + 1);
  const std::uint32_t right = Plan(2 * node + 1, depth + 1);
  const std::uint32_t row = 2 * depth + (node & 1);
  scratch_.resize(std::max(scratch_.size(), (row + 1) * kChunk));
  const auto out = static_cast<std::uint32_t>(nodes_.size()) + row;
  additions_.push_back({.left = left, .right = right, .out = out});
  return out;
}

void TreeSum::Sum(std::span<const std::span<const float>> inputs, float divisor,
                  std::span<float> out) {
  CHECK(inputs.size() == nodes_.size(), "one input a node");
  for (const auto& input : inputs) CHECK(input.size() == out.size(), "equal sizes");
  if (additions_.empty()) return DivideInto(out.data(), inputs.front().data(), divisor, out.size());
  for (std::size_t begin = 0; begin < out.size(); begin += kChunk) {
    const std::size_t size = std::min(kChunk, out.size() - begin);
    const auto operand = [&](std::uint32_t index) -> const float* {
      return index < inputs.size() ? inputs[index].data() + begin
                                   : scratch_.data() + (index - inputs.size()) * kChunk;
    };
    for (const Addition& add : std::span(additions_).first(additions_.size() - 1))
      AddInto(scratch_.data() + (add.out - inputs.size()) * kChunk, operand(add.left),
              operand(add.right), size);
    const Addition& root = additions_.back();
    AddDivideInto(out.data() + begin, operand(root.left), operand(root.right), divisor, size);
  }
}

}  // namespace pliant
