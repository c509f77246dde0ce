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

TreeLevels ChainOf(std::size_t addends) {
  // Each addend but the last waits on a level of its own; the last one is added to all, the nearest
  // first.
  TreeLevels levels;
  levels.count = static_cast<int>(addends);
  for (int level = levels.count - 1; level > 0; --level) {
    levels.first.push_back(level - 1);
    levels.last.push_back(level - 1);
  }
  levels.first.push_back(0);
  levels.last.push_back(levels.count - 1);
  return levels;
}

}  // namespace pliant
