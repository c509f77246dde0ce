#include "trainer/protocol/work_split.h"

#include <bit>

namespace pliant {

int WorkSplit::LeavesFor(Tick tick, int world_size) const {
  return bitwise() ? schedule_.ShardsAt(tick)
                   : static_cast<int>(std::bit_ceil(static_cast<unsigned>(world_size)));
}

ShardMap WorkSplit::MapOf(Tick tick, int world_size) const {
  return AssignShards(LeavesFor(tick, world_size), world_size);
}

WorkSplit::Share WorkSplit::ShareOf(Tick tick, int world_size, int shard) const {
  const int leaves = LeavesFor(tick, world_size);
  if (bitwise()) return {.part = shard, .parts = leaves};
  // There are fewer than twice as many leaves as ranks: the first ranks have a block of two, the
  // others of one. The second leaf of a block is empty.
  const int pairs = leaves - world_size;
  const bool of_pair = shard < 2 * pairs;
  return {.part = of_pair ? shard / 2 : shard - pairs,
          .parts = world_size,
          .empty = of_pair && shard % 2 == 1};
}

ShardTask WorkSplit::TaskOf(Tick tick, int world_size, int shard) const {
  const Share share = ShareOf(tick, world_size, shard);
  ShardTask task = schedule_.PartOf(tick, share.part, share.parts);
  if (share.empty) task.samples.clear();
  task.shard = shard;
  return task;
}

std::uint64_t WorkSplit::SamplesOf(Tick tick, int world_size, int shard) const {
  const Share share = ShareOf(tick, world_size, shard);
  if (share.empty) return 0;
  return Schedule::SizeOfPart(schedule_.At(tick).samples, share.part, share.parts);
}

}  // namespace pliant
