#include "trainer/collective/tree_sum.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace pliant {
namespace {

// Plain loops on purpose: the compiler makes vectors of them, and neither -ffast-math nor
// contraction is on, so every element is one IEEE operation however wide the vectors are. `ivdep`:
// `out` may be `left` or `right` itself, which no order of the iterations minds.
[[gnu::always_inline]] inline void AddLoop(float* out, const float* left, const float* right,
                                           std::size_t size) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < size; ++i) out[i] = left[i] + right[i];
}

[[gnu::always_inline]] inline void DivideLoop(float* out, const float* values, float divisor,
                                              std::size_t size) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < size; ++i) out[i] = values[i] / divisor;
}

[[gnu::always_inline]] inline void ScaleLoop(float* out, const float* values, float factor,
                                             std::size_t size) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < size; ++i) out[i] = values[i] * factor;
}

using AddFunction = void (*)(float*, const float*, const float*, std::size_t);
using DivideFunction = void (*)(float*, const float*, float, std::size_t);
struct Loops {
  AddFunction add;
  DivideFunction divide;
  DivideFunction scale;
};

constexpr Loops kBaseline = {
    .add = [](float* out, const float* left, const float* right,
              std::size_t size) { AddLoop(out, left, right, size); },
    .divide = [](float* out, const float* values, float divisor,
                 std::size_t size) { DivideLoop(out, values, divisor, size); },
    .scale = [](float* out, const float* values, float factor,
                std::size_t size) { ScaleLoop(out, values, factor, size); }};

#if defined(__x86_64__)

[[gnu::target("avx2")]] void AddAvx2(float* out, const float* left, const float* right,
                                     std::size_t size) {
  AddLoop(out, left, right, size);
}
[[gnu::target("avx2")]] void DivideAvx2(float* out, const float* values, float divisor,
                                        std::size_t size) {
  DivideLoop(out, values, divisor, size);
}
[[gnu::target("avx2")]] void ScaleAvx2(float* out, const float* values, float factor,
                                       std::size_t size) {
  ScaleLoop(out, values, factor, size);
}
constexpr Loops kAvx2 = {.add = AddAvx2, .divide = DivideAvx2, .scale = ScaleAvx2};

#endif

const Loops& BestLoops() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return kAvx2;
#endif
  return kBaseline;
}

void AddInto(float* out, const float* left, const float* right, std::size_t size) {
  BestLoops().add(out, left, right, size);
}

// A power of two whose reciprocal is one too: the product is then the same real number as the
// quotient, and so are its bits.
bool DividesAsProduct(float divisor) {
  int exponent = 0;
  return std::frexp(divisor, &exponent) == 0.5F && exponent > -100 && exponent < 100;
}

void DivideInto(float* out, const float* values, float divisor, std::size_t size) {
  if (DividesAsProduct(divisor)) return BestLoops().scale(out, values, 1 / divisor, size);
  BestLoops().divide(out, values, divisor, size);
}

}  // namespace

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

// Adds the additions below `node`; returns the operand that holds it. A row for each depth is
// enough but for right children: the left sibling's row is still in use then, so a depth has two.
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
  if (additions_.empty()) {
    DivideInto(out.data(), inputs.front().data(), divisor, out.size());
    return;
  }
  for (std::size_t begin = 0; begin < out.size(); begin += kChunk) {
    const std::size_t size = std::min(kChunk, out.size() - begin);
    const auto operand = [&](std::uint32_t index) -> const float* {
      return index < inputs.size() ? inputs[index].data() + begin
                                   : scratch_.data() + (index - inputs.size()) * kChunk;
    };
    for (const Addition& add : additions_)
      AddInto(scratch_.data() + (add.out - inputs.size()) * kChunk, operand(add.left),
              operand(add.right), size);
    DivideInto(out.data() + begin, operand(additions_.back().out), divisor, size);
  }
}

}  // namespace pliant
