#include "trainer/collective/tree_sum.h"

#include <algorithm>

#include "base/check.h"
#include "trainer/collective/float_loops.h"

namespace pliant {
namespace {

constexpr std::size_t kChunk = 2048;  // floats: a row of 8 KiB

}  // namespace

void AddFloats(std::span<const float> left, std::span<const float> right, std::span<float> out) {
  CHECK(left.size() == out.size() && right.size() == out.size(), "equal sizes");
  AddInto(out.data(), left.data(), right.data(), out.size());
}

void TreeSum::Sum(const TreeLevels& levels, std::span<const std::span<const float>> inputs,
                  float divisor, std::span<float> out) {
  CHECK(!inputs.empty() && inputs.size() == levels.first.size(), "one input a node");
  for (const auto& input : inputs) CHECK(input.size() == out.size(), "equal sizes");
  if (inputs.size() == 1) return DivideInto(out.data(), inputs.front().data(), divisor, out.size());
  const auto count = static_cast<std::size_t>(levels.count);
  rows_.resize(std::max(rows_.size(), count * kChunk));
  waiting_.resize(std::max(waiting_.size(), count));
  const auto row = [this](int level) {
    return rows_.data() + static_cast<std::size_t>(level) * kChunk;
  };
  const std::size_t final_node = inputs.size() - 1;
  for (std::size_t begin = 0; begin < out.size(); begin += kChunk) {
    const std::size_t size = std::min(kChunk, out.size() - begin);
    for (std::size_t node = 0; node < inputs.size(); ++node) {
      const float* sum = inputs[node].data() + begin;
      const int last = levels.last[node];
      for (int level = levels.first[node]; level < last; ++level) {
        const float* const left = waiting_[static_cast<std::size_t>(level)];
        if (node == final_node && level + 1 == last) {
          AddDivideInto(out.data() + begin, left, sum, divisor, size);
          break;
        }
        // The sum that waited on this level is used up, so its row is free; so is the row of the
        // level on which the result will wait.
        float* const into = row(level + 1 == last ? last : level);
        AddInto(into, left, sum, size);
        sum = into;
      }
      waiting_[static_cast<std::size_t>(last)] = sum;
    }
  }
}

}  // namespace pliant
