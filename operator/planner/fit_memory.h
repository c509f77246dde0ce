#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/feasibility.h"

namespace pliant::planner {

// Which nodes' labels and taints suit which pods, remembered from plan to plan. A tenant's template
// may hold a thousand expressions and two thousand values: it is compared with a node when one of
// the two is new, and not in each plan. What comes out of a plan does not depend on it.
class FitMemory {
 public:
  // A plan begins: what the one before did not ask for is forgotten.
  void BeginPlan();
  // What labels and taints of each node say to `needs`: kTaint, kLabels or kNone. It is quicker if
  // `nodes` are mostly those of the plan before, in their order; null: there is no such node.
  std::vector<Obstacle> Compare(const PodNeeds& needs, std::span<const NodeView* const> nodes);
  std::uint64_t comparisons() const { return comparisons_; }  // so far

 private:
  struct Seen {
    std::uint64_t version = 0;  // of the node; 0: none yet
    Obstacle obstacle = Obstacle::kNone;
  };
  struct Entry {
    std::uint64_t plan = 0;  // that asked last
    std::vector<Seen> nodes;
  };

  std::map<PodNeeds, Entry> entries_;
  std::uint64_t plan_ = 0;
  std::uint64_t comparisons_ = 0;
};

}  // namespace pliant::planner
