#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/feasibility.h"

namespace pliant::planner {

// A cache, across plans, of which nodes' labels and taints suit which pods. A tenant's template may
// have a thousand expressions and two thousand values: it is compared with a node only when one of
// the two is new, not in each plan. The cache does not change the result of a plan.
class FitMemory {
 public:
  // Call when a plan begins: removes the entries that the previous plan did not use.
  void BeginPlan();
  // Checks labels and taints of each node of the pool against `needs`: kTaint, kLabels or kNone.
  // Faster if `nodes` are mostly those of the previous plan in the same order; null: there is no
  // such node.
  std::vector<Obstacle> Compare(const std::string& pool, const PodNeeds& needs,
                                std::span<const NodeView* const> nodes);
  std::uint64_t comparisons() const { return comparisons_; }  // so far

 private:
  struct Seen {
    std::uint64_t version = 0;  // of the node; 0: not compared yet
    Obstacle obstacle = Obstacle::kNone;
  };
  struct Entry {
    std::uint64_t plan = 0;  // the last plan that used this entry
    std::vector<Seen> nodes;
  };

  std::map<std::string, std::map<PodNeeds, Entry>> pools_;
  std::uint64_t plan_ = 0;
  std::uint64_t comparisons_ = 0;
};

}  // namespace pliant::planner
