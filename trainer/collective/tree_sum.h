#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/collective/tree_levels.h"

namespace pliant {

// left + right, elementwise in fp32. `out` may be `left` or `right`.
void AddFloats(std::span<const float> left, std::span<const float> right, std::span<float> out);

// Adds up vectors along a tree, in one pass over memory: every input is read once, the result is
// written once, and intermediate sums stay in the cache.
class TreeSum {
 public:
  // out[i] = (sum along the tree)[i] / divisor. `inputs` are in the order of the levels' nodes; all
  // have the size of `out`, and none overlaps with it.
  void Sum(const TreeLevels& levels, std::span<const std::span<const float>> inputs, float divisor,
           std::span<float> out);

 private:
  std::vector<float> rows_;            // a sum that waits on a level, for each level
  std::vector<const float*> waiting_;  // by level: its row, or an input
};

}  // namespace pliant
