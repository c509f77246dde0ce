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

WorkSplit::Share WorkSplit::ShareOf(int world_size, int shard) const {
  if (bitwise()) return {.part = shard, .parts = schedule_.spec().logical_shards};
  // There are fewer than twice as many leaves as ranks: the first ranks have a block of two, the
  // others of one. The second leaf of a block is empty.
  const int pairs = LeavesFor(world_size) - world_size;
  const bool of_pair = shard < 2 * pairs;
  return {.part = of_pair ? shard / 2 : shard - pairs,
          .parts = world_size,
          .empty = of_pair && shard % 2 == 1};
}

ShardTask WorkSplit::TaskOf(Tick tick, int world_size, int shard) const {
  const Share share = ShareOf(world_size, shard);
  ShardTask task = schedule_.PartOf(tick, share.part, share.parts);
  if (share.empty) task.samples.clear();
  task.shard = shard;
  return task;
}

std::uint64_t WorkSplit::SamplesOf(std::uint64_t samples, int world_size, int shard) const {
  const Share share = ShareOf(world_size, shard);
  return share.empty ? 0 : Schedule::SizeOfPart(samples, share.part, share.parts);
}

}  // namespace pliant
