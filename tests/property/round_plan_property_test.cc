#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/fakes/rounds/all_ranks.h"
#include "trainer/collective/round_plan.h"

// Symbolic execution of the plans of all ranks: the mean of each piece, on each rank, is the tree's
// expression, whoever computed which shards on whichever hosts.
namespace pliant {
namespace {

int Draw(int from, int to_inclusive) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to_inclusive + 1));
}

std::string Sum(const std::string& left, const std::string& right) {
  return "(" + left + "+" + right + ")";
}

std::string Expression(int shards, NodeIndex node) {
  const ShardBlock block = BlockOf(shards, node);
  std::vector<std::string> leaves;
  for (int i = 0; i < block.count; ++i) leaves.push_back(std::to_string(block.first + i));
  return SumTree<std::string>(leaves, Sum);
}

RC_GTEST_PROP(RoundPlan, GivesTheTreeToAllRanks, ()) {
  const int shards = 1 << Draw(0, 6);
  const int world_size = Draw(1, 9);
  std::vector<bool> computes;
  std::vector<int> host_of_rank;
  for (int rank = 0; rank < world_size; ++rank) {
    computes.push_back(Draw(0, 4) > 0);
    host_of_rank.push_back(Draw(0, 3));
  }
  computes[static_cast<std::size_t>(Draw(0, world_size - 1))] = true;
  const ShardMap map = AssignShardsAmong(shards, computes);
  if (Draw(0, 1) == 0) host_of_rank.clear();
  std::vector<RoundPlan> plans;
  for (int rank = 0; rank < world_size; ++rank) plans.emplace_back(map, host_of_rank, rank);
  const BucketLayout layout(static_cast<std::size_t>(Draw(1, 700)), {.first = 48, .rest = 160});

  const auto means = AllRanks<std::string>(
                         plans, layout,
                         [&](int, NodeIndex node, ElementRange range) {
                           return Expression(shards, node) + "@" + std::to_string(range.begin);
                         },
                         Sum)
                         .Run();

  // Each own node names its range once, so a sum of nodes names it as often as it has nodes.
  for (int rank = 0; rank < world_size; ++rank) {
    std::size_t elements = 0;
    for (std::uint32_t bucket = 0; bucket < layout.count(); ++bucket) {
      for (int piece = 0; piece < world_size; ++piece) {
        if (map.blocks_of_rank[static_cast<std::size_t>(piece)].empty()) continue;
        const auto& plan = plans[static_cast<std::size_t>(rank)];
        const ElementRange range = plan.RangeOf(layout.RangeOf(bucket), piece);
        if (range.size == 0) continue;
        RC_ASSERT(range.size <= plan.MaxPiece(layout.RangeOf(bucket).size));
        elements += range.size;
        std::string mean = means[static_cast<std::size_t>(rank)].at(range.begin);
        const std::string place = "@" + std::to_string(range.begin);
        for (auto at = mean.find('@'); at != std::string::npos; at = mean.find('@')) {
          RC_ASSERT(mean.substr(at, place.size()) == place);
          mean.erase(at, place.size());
        }
        RC_ASSERT(mean == Expression(shards, kRootNode));
      }
    }
    RC_ASSERT(elements == layout.elements());
  }
}

}  // namespace
}  // namespace pliant
