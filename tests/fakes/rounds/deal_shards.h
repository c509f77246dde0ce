#pragma once

#include <cstddef>

#include "trainer/collective/tree.h"

namespace pliant {

// Cuts the tree below `block` at drawn nodes and gives them to drawn ranks: so are the nodes of a
// redone tick distributed, which keeps what ranks had finished. `draw(n)`: from 0 to n - 1.
template <typename Draw>
void DealShards(ShardBlock block, const Draw& draw, ShardMap& map) {
  if (block.count > 1 && draw(3) != 0) {
    const int half = block.count / 2;
    DealShards({.first = block.first, .count = half}, draw, map);
    DealShards({.first = block.first + half, .count = half}, draw, map);
  } else {
    const auto rank = draw(static_cast<unsigned>(map.blocks_of_rank.size()));
    map.blocks_of_rank[static_cast<std::size_t>(rank)].push_back(block);
  }
}

}  // namespace pliant
