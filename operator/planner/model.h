#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/plan.h"

// The snapshot as the steps of planning use it: sorted, indexed, and with everything worked out
// that depends on one job or one node alone. It points into the snapshot, which outlives it.
namespace pliant::planner {

using NodeIndex = int;
using JobIndex = int;

struct Node {
  const NodeView* view =
      nullptr;  // null: some learner runs there, but the snapshot has no such node
  std::string_view name;
  // What learners may take: nothing where none may be granted anew. Who holds GPUs on such a node
  // may keep them.
  Resources room;
  std::int64_t occupied_gpus = 0;  // by learners' pods this moment, leavers included
  std::int64_t held_gpus =
      0;  // the same without leavers; more than its room when the node lost GPUs
};

// Learners of one job on one node that may stay there.
struct HeldAt {
  NodeIndex node = 0;
  LearnerCount started = 0;   // they hold their GPUs
  LearnerCount learners = 0;  // with the gated ones
};

// Jobs that may use the same nodes in the same way.
struct Fit {
  Resources needs;
  std::vector<NodeIndex> nodes;
  std::int64_t slots = 0;  // learners that fit on the nodes if nobody else is there
  // Of all nodes, whether a learner's failures there are a reason to avoid it or not.
  std::vector<Obstacle> obstacles;
};

enum class DemandLimit { kMaximum, kShards, kProgram, kCap };

struct Job {
  const JobView* view = nullptr;
  bool active = false;  // neither suspended nor finished: it takes part in the sharing
  int fit = 0;
  std::optional<int> budget;  // of its namespace; nothing: it has none
  LearnerCount minimum = 1;
  LearnerCount demand = 1;
  DemandLimit limit = DemandLimit::kMaximum;
  LearnerCount present = 0;                    // learners that do not leave, wherever they are
  std::vector<const LearnerView*> held;        // those that may stay, the ones to keep first
  std::vector<HeldAt> held_at;                 // the same, by node, in the order of their first
  std::optional<DemandCap> cap;                // for the next snapshot
  LearnerCount withdrawn = 0;                  // learners that did not start in time, just now
  std::optional<LearnerCount> protected_size;  // is not shrunk below: it is fresh
  std::optional<LearnerCount> frozen_size;     // is left alone: it was resized a moment ago

  bool admitted_before() const { return view->learners_desired > 0 || present > 0; }
  const Resources& needs() const { return view->needs.resources; }
  LearnerCount StartedAt(NodeIndex node) const;
  LearnerCount HeldOn(NodeIndex node) const;
};

struct Model {
  const ClusterSnapshot* snapshot = nullptr;
  std::vector<Node> nodes;  // by name
  std::vector<Job> jobs;    // by key
  std::vector<Fit> fits;
  std::vector<GpuBudget> budgets;
  std::int64_t capacity_gpus = 0;
  std::optional<WallTime> again_at;

  NodeIndex NodeNamed(std::string_view name) const;  // where it is, or would be
};

Model MakeModel(const ClusterSnapshot& snapshot, const Policy& policy, FitMemory& memory);

}  // namespace pliant::planner
