#include "trainer/collective/shard_dealing.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <tuple>

#include "base/check.h"

namespace pliant {
namespace {

struct Finished {
  ShardBlock block;
  int rank = 0;
};

// The fewest blocks that cover exactly `shards`, which ascend.
std::vector<ShardBlock> BlocksOf(std::span<const int> shards) {
  std::vector<ShardBlock> blocks;
  while (!shards.empty()) {
    const int first = shards.front();
    int run = 1;
    while (run < std::ssize(shards) && shards[static_cast<std::size_t>(run)] == first + run) ++run;
    int count = static_cast<int>(std::bit_floor(static_cast<unsigned>(run)));
    while (first % count != 0) count /= 2;
    blocks.push_back({.first = first, .count = count});
    shards = shards.subspan(static_cast<std::size_t>(count));
  }
  return blocks;
}

}  // namespace

ShardDealing ReassignMissingShards(int logical_shards,
                                   const std::vector<std::vector<NodeIndex>>& finished,
                                   const std::vector<bool>& computes) {
  CHECK(computes.size() == finished.size(), "one entry per rank in both");
  std::vector<Finished> candidates;
  for (std::size_t rank = 0; rank < finished.size(); ++rank) {
    for (const NodeIndex node : finished[rank]) {
      candidates.push_back({BlockOf(logical_shards, node), static_cast<int>(rank)});
    }
  }
  if (candidates.empty()) {
    ShardMap map = AssignShardsAmong(logical_shards, computes);
    std::vector<std::vector<ShardBlock>> all = map.blocks_of_rank;
    return {.map = std::move(map), .to_compute = std::move(all)};
  }

  ShardDealing dealing{
      .map = {.logical_shards = logical_shards,
              .blocks_of_rank = std::vector<std::vector<ShardBlock>>(finished.size())},
      .to_compute = {}};
  // Two nodes of a tree are disjoint, or one contains the other: with the largest first, a node
  // that is skipped is covered completely.
  std::ranges::sort(candidates, {}, [](const Finished& candidate) {
    return std::tuple(-candidate.block.count, candidate.block.first, candidate.rank);
  });
  std::vector<bool> covered(static_cast<std::size_t>(logical_shards), false);
  for (const auto& [block, rank] : candidates) {
    if (covered[static_cast<std::size_t>(block.first)]) continue;
    std::fill_n(covered.begin() + block.first, block.count, true);
    dealing.map.blocks_of_rank[static_cast<std::size_t>(rank)].push_back(block);
  }

  std::vector<int> missing;
  for (int shard = 0; shard < logical_shards; ++shard) {
    if (!covered[static_cast<std::size_t>(shard)]) missing.push_back(shard);
  }
  std::span<const int> left = missing;
  auto ranks_left = static_cast<std::size_t>(std::ranges::count(computes, true));
  for (std::size_t rank = 0; rank < finished.size(); ++rank) {
    std::size_t part = 0;
    if (computes[rank]) {
      part = (left.size() + ranks_left - 1) / ranks_left;
      --ranks_left;
    }
    dealing.to_compute.push_back(BlocksOf(left.first(part)));
    left = left.subspan(part);
    auto& blocks = dealing.map.blocks_of_rank[rank];
    std::ranges::copy(dealing.to_compute.back(), std::back_inserter(blocks));
    std::ranges::sort(blocks, {}, &ShardBlock::first);
  }
  return dealing;
}

}  // namespace pliant
