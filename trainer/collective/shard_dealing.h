#pragma once

#include <vector>

#include "trainer/collective/tree.h"

namespace pliant {

// The assignment of the shards in a tick in which some are finished already.
struct ShardDealing {
  ShardMap map;  // complete: a finished block belongs to the rank that holds it
  // The blocks of the map that are still to be computed, by rank, then by first shard.
  std::vector<std::vector<ShardBlock>> to_compute;
  bool operator==(const ShardDealing&) const = default;
};

// Divides the shards that no rank has finished evenly among the ranks for which `computes` is true,
// at least one: their numbers differ by at most one, the first ranks have more. `finished` has
// nodes of the tree, by rank; of overlapping nodes the largest counts, of equal ones that of the
// lowest rank. If none is finished this is AssignShardsAmong.
ShardDealing ReassignMissingShards(int logical_shards,
                                   const std::vector<std::vector<NodeIndex>>& finished,
                                   const std::vector<bool>& computes);

}  // namespace pliant
