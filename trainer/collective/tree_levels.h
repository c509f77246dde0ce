#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/collective/tree.h"

namespace pliant {

// The reduction tree as a GPU's thread walks it, without a stack. Nodes come in the order of their
// first shards, and one sum waits on each level at most: node i is added to the sums that wait on
// the levels [first[i], last[i]), and the result waits on level last[i]. Levels count from the
// lowest one of the nodes.
struct TreeLevels {
  std::vector<int> first;  // by node
  std::vector<int> last;   // by node
  int count = 0;           // of the levels

  bool operator==(const TreeLevels&) const = default;
};

// `nodes`: in the order of their first shards; together they are all that is below one node.
TreeLevels LevelsOf(int logical_shards, std::span<const NodeIndex> nodes);
// left + (left + (left + last)), for any number of addends.
TreeLevels ChainOf(std::size_t addends);

}  // namespace pliant
