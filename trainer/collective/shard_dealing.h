#pragma once

#include <vector>

#include "trainer/collective/tree.h"

namespace pliant {

// Who does what in a tick of which some shards are finished already.
struct ShardDealing {
  ShardMap map;  // complete: what is finished belongs to who holds it
  // Of the map, what is still to be computed. By rank, then by first shard.
  std::vector<std::vector<ShardBlock>> to_compute;
  bool operator==(const ShardDealing&) const = default;
};

// Deals the shards that nobody has finished evenly among the ranks for which `computes` is true,
// which are some: their numbers differ by at most one, the first ranks have more. `finished`, by
// rank, are nodes of the tree; of those that overlap the greatest counts, of equal ones that of the
// lowest rank. When none is finished this is AssignShardsAmong.
ShardDealing ReassignMissingShards(int logical_shards,
                                   const std::vector<std::vector<NodeIndex>>& finished,
                                   const std::vector<bool>& computes);

}  // namespace pliant
