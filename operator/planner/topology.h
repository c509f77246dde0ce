#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "operator/planner/cluster_snapshot.h"

namespace pliant::planner {

// Which nodes are near each other. A domain is a set of nodes with the same value of a label, for
// example a zone or a rack; domains are nested. The narrowest domain is a node.
class Topology {
 public:
  Topology() = default;
  // `keys`: labels, the widest domains first; the first kMaxTopologyKeys count. `nodes` are in the
  // order of their indexes; null: a node of which nothing is known. A node without a label is a
  // domain of its own.
  Topology(std::span<const std::string> keys, std::span<const NodeView* const> nodes);

  // Level 0 has the widest domains. On the last level, each node is a domain.
  int last_level() const { return static_cast<int>(domains_.size()); }
  // From 0, below the number of nodes. Domains of different levels may have equal numbers.
  int DomainOf(int node, int level) const {
    return level == last_level() ? node : domains_[level][node];
  }

 private:
  std::vector<std::vector<int>> domains_;  // by level, without the last one, and node
};

}  // namespace pliant::planner
