#include "trainer/runtime/work_split.h"

#include <algorithm>
#include <bit>

namespace pliant {

ShardMap WorkSplit::MapOf(int world_size) const {
  // With less than twice as many leaves as ranks, each rank has one block, of one or two leaves.
  const int leaves = bitwise() ? schedule_.spec().logical_shards
                               : static_cast<int>(std::bit_ceil(static_cast<unsigned>(world_size)));
  return AssignShards(leaves, world_size);
}

ShardTask WorkSplit::TaskOf(Tick tick, int world_size, int shard) const {
  if (bitwise()) return schedule_.TaskOf(tick, shard);
  const ShardMap map = MapOf(world_size);
  const auto owner = std::ranges::find_if(map.blocks_of_rank, [&](const auto& blocks) {
    return blocks.front().first <= shard && shard < blocks.front().first + blocks.front().count;
  });
  const auto rank = static_cast<int>(owner - map.blocks_of_rank.begin());
  ShardTask task = schedule_.PartOf(tick, rank, world_size);
  // The second leaf of a block is there to fill the tree up.
  if (shard != owner->front().first) task.samples.clear();
  task.shard = shard;
  return task;
}

}  // namespace pliant
