#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/fakes/rounds/all_ranks.h"
#include "tests/fakes/rounds/deal_shards.h"
#include "trainer/collective/reduction_plan.h"

// Symbolic execution of the plans of all ranks: the mean of each piece, on each rank, is the tree's
// expression, whoever computed which shards on whichever hosts.
namespace pliant {
namespace {

int Draw(int from, int to_inclusive) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to_inclusive + 1));
}

// A number that stands for an expression: of another one it is another with near certainty, also if
// left and right are exchanged. Of a node it stands for its elements from `begin` on, too, so that
// no sum of different places looks right.
using Expression = std::uint64_t;

Expression Mixed(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

Expression Sum(const Expression& left, const Expression& right) {
  return Mixed(Mixed(left) * 3 + right);
}

Expression OfNode(int shards, NodeIndex node, std::size_t begin) {
  if (node >= static_cast<NodeIndex>(shards)) return Mixed(node * 0x100000001ULL + begin);
  return Sum(OfNode(shards, 2 * node, begin), OfNode(shards, 2 * node + 1, begin));
}

// Some ranks only catch up. After a loss the nodes lie anywhere.
ShardMap DrawMap(int shards, int world_size) {
  if (Draw(0, 2) == 0) {
    ShardMap map{.logical_shards = shards, .blocks_of_rank = {}};
    map.blocks_of_rank.resize(static_cast<std::size_t>(world_size));
    // A draw of rapidcheck for each of 4,096 nodes would take long.
    std::uint64_t state = static_cast<std::uint64_t>(Draw(0, 1 << 30));
    DealShards(
        {.first = 0, .count = shards},
        [&](unsigned count) {
          state = Mixed(state);
          return static_cast<unsigned>(state % count);
        },
        map);
    return map;
  }
  std::vector<bool> computes;
  for (int rank = 0; rank < world_size; ++rank) computes.push_back(Draw(0, 4) > 0);
  computes[static_cast<std::size_t>(Draw(0, world_size - 1))] = true;
  return AssignShardsAmong(shards, computes);
}

void ExpectTheTree(int shards, int world_size, int hosts, std::size_t elements) {
  const ShardMap map = DrawMap(shards, world_size);
  std::vector<int> host_of_rank;
  if (Draw(0, 1) == 0)
    for (int rank = 0; rank < world_size; ++rank) host_of_rank.push_back(Draw(0, hosts - 1));
  std::vector<ReductionPlan> plans;
  for (int rank = 0; rank < world_size; ++rank) plans.emplace_back(map, host_of_rank, rank);
  const BucketLayout layout(elements, {.first = 48, .rest = 160});

  const auto means = AllRanks<Expression>(
                         plans, layout,
                         [&](int, NodeIndex node, ElementRange range) {
                           return OfNode(shards, node, range.begin);
                         },
                         Sum)
                         .Run();

  for (int rank = 0; rank < world_size; ++rank) {
    const ReductionPlan& plan = plans[static_cast<std::size_t>(rank)];
    std::size_t covered = 0;
    for (std::uint32_t bucket = 0; bucket < layout.count(); ++bucket) {
      for (int piece = 0; piece < world_size; ++piece) {
        if (map.blocks_of_rank[static_cast<std::size_t>(piece)].empty()) continue;
        const ElementRange range = plan.RangeOf(layout.RangeOf(bucket), piece);
        if (range.size == 0) continue;
        RC_ASSERT(range.size <= plan.MaxPiece(layout.RangeOf(bucket).size));
        RC_ASSERT(means[static_cast<std::size_t>(rank)].at(range.begin) ==
                  OfNode(shards, kRootNode, range.begin));
        covered += range.size;
      }
    }
    RC_ASSERT(covered == layout.elements());
  }
}

RC_GTEST_PROP(ReductionPlan, GivesTheTreeToAllRanks, ()) {
  ExpectTheTree(1 << Draw(0, 6), Draw(1, 9), 4, static_cast<std::size_t>(Draw(1, 700)));
}

RC_GTEST_PROP(ReductionPlan, GivesTheTreeOfThousandsOfShards, ()) {
  if (Draw(0, 9) > 0) return;  // it takes a while
  ExpectTheTree(1 << Draw(10, 12), Draw(2, 40), Draw(1, 12),
                static_cast<std::size_t>(Draw(1, 400)));
}

}  // namespace
}  // namespace pliant
