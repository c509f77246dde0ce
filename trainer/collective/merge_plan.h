#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/collective/tree.h"

namespace pliant::cuda {

// The reduction tree as a GPU thread walks it: inputs are pushed on a stack in order of their first
// shards, and after each of them the two topmost entries are added, `additions` times. The work for
// one element has no branches that differ between threads.
struct MergePlan {
  std::vector<NodeIndex> nodes;         // the inputs, in the order of pushing
  std::vector<std::uint8_t> additions;  // number of additions after each input
  int depth = 0;                        // max size of the stack
};

MergePlan PlanMerges(const ShardMap& map);  // `map` is complete

}  // namespace pliant::cuda
