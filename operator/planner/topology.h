#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "operator/planner/cluster_snapshot.h"

namespace pliant::planner {

// Which nodes are near each other. A domain is a set of nodes with the same value of a label, for
// example a zone or a rack; domains are nested. Without labels, there are no levels.
class Topology {
 public:
  Topology() = default;
  // `keys`: labels, the widest domains first. `nodes` are in the order of their indexes; null: a
  // node of which nothing is known. A node without a label is a domain of its own.
  Topology(std::span<const std::string> keys, std::span<const NodeView* const> nodes);

  // Number of levels, without that of the single node. Level 0 has the widest domains.
  int levels() const { return static_cast<int>(domains_.size()); }
  // Domains of different levels may have equal numbers.
  int DomainOf(int node, int level) const { return domains_[level][node]; }

 private:
  std::vector<std::vector<int>> domains_;  // by level and node
};

}  // namespace pliant::planner
