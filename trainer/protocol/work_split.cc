#include "trainer/protocol/work_split.h"

#include <bit>

namespace pliant {

int WorkSplit::LeavesFor(int world_size) const {
  return bitwise() ? schedule_.spec().logical_shards
                   : static_cast<int>(std::bit_ceil(static_cast<unsigned>(world_size)));
}

ShardMap WorkSplit::MapOf(int world_size) const {
  return AssignShards(LeavesFor(world_size), world_size);
}

ShardTask WorkSplit::TaskOf(Tick tick, int world_size, int shard) const {
  if (bitwise()) return schedule_.PartOf(tick, shard, schedule_.spec().logical_shards);
  // There are fewer than twice as many leaves as ranks: the first ranks have a block of two, the
  // others of one.
  const int pairs = LeavesFor(world_size) - world_size;
  const bool of_pair = shard < 2 * pairs;
  ShardTask task = schedule_.PartOf(tick, of_pair ? shard / 2 : shard - pairs, world_size);
  // The second leaf of a block is empty: it only completes the tree.
  if (of_pair && shard % 2 == 1) task.samples.clear();
  task.shard = shard;
  return task;
}

}  // namespace pliant
