#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "trainer/collective/shard_dealing.h"

// Properties of the reassignment, however a tick was aborted.
namespace pliant {
namespace {

int Draw(int from, int to_inclusive) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to_inclusive + 1));
}

RC_GTEST_PROP(ShardDealing, IsCompleteAndEvenAndWastesNothing, ()) {
  const int shards = 1 << Draw(0, 6);
  const int world_size = Draw(1, 9);
  std::vector<std::vector<NodeIndex>> finished(static_cast<std::size_t>(world_size));
  std::set<int> covered;
  for (int i = Draw(0, 12); i > 0; --i) {
    const NodeIndex node = static_cast<NodeIndex>(Draw(1, 2 * shards - 1));
    finished[static_cast<std::size_t>(Draw(0, world_size - 1))].push_back(node);
    const ShardBlock block = BlockOf(shards, node);
    for (int j = 0; j < block.count; ++j) covered.insert(block.first + j);
  }
  std::vector<bool> computes;
  for (int rank = 0; rank < world_size; ++rank) computes.push_back(Draw(0, 3) > 0);
  computes[static_cast<std::size_t>(Draw(0, world_size - 1))] = true;
  const ShardDealing dealing = ReassignMissingShards(shards, finished, computes);

  RC_ASSERT(dealing.map.world_size() == world_size);
  RC_ASSERT(IsComplete(dealing.map));
  std::vector<int> sizes;
  std::set<int> to_compute;
  for (std::size_t rank = 0; rank < finished.size(); ++rank) {
    const std::vector<ShardBlock>& own = dealing.map.blocks_of_rank[rank];
    RC_ASSERT(std::ranges::is_sorted(own, {}, &ShardBlock::first));
    int size = 0;
    for (const ShardBlock& block : own) {
      if (!std::ranges::contains(dealing.to_compute[rank], block)) {
        RC_ASSERT(std::ranges::contains(finished[rank], NodeOf(shards, block)));
        continue;
      }
      size += block.count;
      for (int j = 0; j < block.count; ++j) to_compute.insert(block.first + j);
    }
    for (const ShardBlock& block : dealing.to_compute[rank]) {
      RC_ASSERT(std::ranges::contains(own, block));
    }
    RC_ASSERT(computes[rank] || size == 0);
    if (computes[rank]) sizes.push_back(size);
  }
  const auto [least, most] = std::ranges::minmax(sizes);
  RC_ASSERT(most - least <= 1);
  // Exactly the missing shards are computed.
  RC_ASSERT(std::ranges::none_of(to_compute, [&](int shard) { return covered.contains(shard); }));
  RC_ASSERT(to_compute.size() + covered.size() == static_cast<std::size_t>(shards));
}

}  // namespace
}  // namespace pliant
