#include "trainer/collective/tree.h"

#include <algorithm>
#include <bit>

namespace pliant {

namespace {

bool IsPowerOfTwo(int value) {
  return value > 0 && std::has_single_bit(static_cast<unsigned>(value));
}

}  // namespace

NodeIndex NodeOf(int logical_shards, ShardBlock block) {
  CHECK(block.count > 0 && block.first % block.count == 0 && logical_shards % block.count == 0 &&
            block.first >= 0 && block.first < logical_shards,
        "an aligned block of shards");
  return static_cast<NodeIndex>(logical_shards / block.count + block.first / block.count);
}

ShardBlock BlockOf(int logical_shards, NodeIndex node) {
  CHECK(node >= 1 && node < 2 * static_cast<NodeIndex>(logical_shards), "a node of the tree");
  const auto level_width = static_cast<int>(std::bit_floor(node));
  const int count = logical_shards / level_width;
  return {.first = (static_cast<int>(node) - level_width) * count, .count = count};
}

std::vector<int> ShardMap::ShardsOf(int rank) const {
  std::vector<int> shards;
  for (const ShardBlock& block : blocks_of_rank.at(static_cast<std::size_t>(rank)))
    for (int i = 0; i < block.count; ++i) shards.push_back(block.first + i);
  return shards;
}

ShardMap AssignShards(int logical_shards, int world_size) {
  CHECK(IsPowerOfTwo(logical_shards), "a power of two of logical shards");
  CHECK(world_size >= 1, "at least one rank computes");
  ShardMap map{
      .logical_shards = logical_shards,
      .blocks_of_rank = std::vector<std::vector<ShardBlock>>(static_cast<std::size_t>(world_size))};
  const int least = logical_shards / world_size;
  const int longer = logical_shards % world_size;  // number of ranks with one more
  // Blocks of decreasing size, one after another: each begins at a multiple of its size.
  int first = 0;
  for (int count = logical_shards; count >= 1; count /= 2) {
    for (int rank = 0; rank < world_size; ++rank) {
      const int shards = least + (rank < longer ? 1 : 0);
      if ((shards & count) == 0) continue;
      map.blocks_of_rank[static_cast<std::size_t>(rank)].push_back(
          {.first = first, .count = count});
      first += count;
    }
  }
  CHECK(first == logical_shards, "all shards are handed out");
  return map;
}

ShardMap AssignShardsAmong(int logical_shards, const std::vector<bool>& computes) {
  ShardMap among =
      AssignShards(logical_shards, static_cast<int>(std::ranges::count(computes, true)));
  ShardMap map{.logical_shards = logical_shards,
               .blocks_of_rank = std::vector<std::vector<ShardBlock>>(computes.size())};
  auto next = among.blocks_of_rank.begin();
  for (std::size_t rank = 0; rank < computes.size(); ++rank) {
    if (computes[rank]) map.blocks_of_rank[rank] = std::move(*next++);
  }
  return map;
}

namespace {

// All blocks, by their first shard.
std::vector<ShardBlock> BlocksOf(const ShardMap& map) {
  std::vector<ShardBlock> blocks;
  for (const auto& of_rank : map.blocks_of_rank)
    blocks.insert(blocks.end(), of_rank.begin(), of_rank.end());
  std::ranges::sort(blocks, {}, &ShardBlock::first);
  return blocks;
}

}  // namespace

std::vector<NodeIndex> NodesOf(const ShardMap& map) {
  std::vector<NodeIndex> nodes;
  for (const ShardBlock& block : BlocksOf(map)) nodes.push_back(NodeOf(map.logical_shards, block));
  return nodes;
}

bool IsComplete(const ShardMap& map) {
  int next = 0;
  for (const ShardBlock& block : BlocksOf(map)) {
    if (block.first != next || !IsPowerOfTwo(block.count) || block.first % block.count != 0)
      return false;
    next += block.count;
  }
  return next == map.logical_shards && IsPowerOfTwo(next);
}

}  // namespace pliant
