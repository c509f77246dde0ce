#include "trainer/runtime/work_split.h"

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
  ShardTask task;
  PutTask(tick, world_size, shard, task);
  return task;
}

void WorkSplit::PutTask(Tick tick, int world_size, int shard, ShardTask& task) const {
  if (bitwise()) {
    return schedule_.PutPart(tick, shard, schedule_.spec().logical_shards, task);
  }
  // There are less than twice as many leaves as ranks: the first ranks have a block of two, the
  // others of one.
  const int pairs = LeavesFor(world_size) - world_size;
  const bool of_pair = shard < 2 * pairs;
  schedule_.PutPart(tick, of_pair ? shard / 2 : shard - pairs, world_size, task);
  // The second leaf of a block is there to fill the tree up.
  if (of_pair && shard % 2 == 1) task.samples.clear();
  task.shard = shard;
}

}  // namespace pliant
