#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
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
  // Whether labels and taints of some node of the pool suit these needs. Takes constant time if
  // neither the needs (by identity) nor the nodes have changed since the last plan. `nodes` are the
  // same in all calls of one plan.
  bool SuitSome(const std::string& pool, const SharedNeeds& asks,
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

  struct Verdict {
    Entry* entry = nullptr;
    std::uint64_t look = 0;  // Pool::look of the nodes that were compared
    bool suit_some = false;
  };
  struct Pool {
    std::map<PodNeeds, Entry> entries;
    // Each refers to an entry, which the same plan used.
    std::unordered_map<std::shared_ptr<const PodNeeds>, Verdict> verdicts;
    std::uint64_t plan = 0;               // the last plan that looked at the nodes
    std::uint64_t look = 0;               // counts the plans in which they had changed
    std::vector<std::uint64_t> versions;  // of the nodes
  };

  Entry& EntryOf(Pool& pool, const PodNeeds& needs);
  void LookAtNodes(Pool& pool, std::span<const NodeView* const> nodes) const;
  // The result is at the index of the node.
  std::vector<Obstacle> Compare(Entry& entry, const PodNeeds& needs,
                                std::span<const NodeView* const> nodes);

  std::map<std::string, Pool> pools_;
  std::uint64_t plan_ = 1;
  std::uint64_t comparisons_ = 0;
};

}  // namespace pliant::planner
