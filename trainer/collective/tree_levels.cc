#include "trainer/collective/tree_levels.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/check.h"

namespace pliant {

TreeLevels LevelsOf(int logical_shards, std::span<const NodeIndex> nodes) {
  const auto level_of = [&](NodeIndex node) {
    return std::countr_zero(static_cast<unsigned>(BlockOf(logical_shards, node).count));
  };
  CHECK(!nodes.empty(), "a tree has a node");
  const int lowest = level_of(std::ranges::max(nodes));
  TreeLevels levels;
  std::map<int, NodeIndex> waiting;  // by level
  for (NodeIndex node : nodes) {
    int level = level_of(node) - lowest;
    levels.first.push_back(level);
    for (auto left = waiting.find(level); left != waiting.end() && left->second + 1 == node;
         left = waiting.find(level)) {
      waiting.erase(left);
      node /= 2;
      ++level;
    }
    levels.last.push_back(level);
    levels.count = std::max(levels.count, level + 1);
    waiting[level] = node;
  }
  CHECK(waiting.size() == 1, "the nodes end in one sum");
  return levels;
}

}  // namespace pliant
