#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/collective/tree.h"

namespace pliant::cuda {

// The reduction tree as a GPU thread walks it: inputs are pushed on a stack in order of their first
// shards, and after each the two topmost entries are added so many times. A block of work for one
// element, without branches that differ between threads.
struct MergePlan {
  std::vector<NodeIndex> nodes;         // of the inputs, in the order of pushing
  std::vector<std::uint8_t> additions;  // after each input
  int depth = 0;                        // of the stack
};

MergePlan PlanMerges(const ShardMap& map);  // complete

}  // namespace pliant::cuda
