#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/pending_pods.h"
#include "operator/planner/plan.h"
#include "operator/planner/topology.h"

// The snapshot in the form that the planning steps use: sorted, indexed, and with everything
// precomputed that depends on one job or one node alone. It points into the snapshot, which
// outlives it.
namespace pliant::planner {

using NodeIndex = int;
using JobIndex = int;
using QueueIndex = int;

// The bits of a training may depend on both. "": the node does not have the label.
struct GpuKind {
  std::string_view product;  // the kGpuProductLabel
  std::string_view driver;   // the kGpuDriverLabel
  auto operator<=>(const GpuKind&) const = default;
};

struct Node {
  const NodeView* view = nullptr;  // null: a learner runs there, but the snapshot has no such node
  std::string_view name;
  GpuKind gpus;
  // Resources that learners may use; 0 on a node that takes no new learners. A learner that holds
  // GPUs on such a node may keep them.
  Resources room;
  std::int64_t occupied_gpus = 0;  // used by learners' pods now, including those that leave
  std::int64_t held_gpus =
      0;  // the same without those that leave; more than `room` if the node lost GPUs
};

// Learners of one job on one node that may stay there.
struct HeldAt {
  NodeIndex node = 0;
  LearnerCount started = 0;   // they hold their GPUs
  LearnerCount learners = 0;  // including gated ones
};

// A class of jobs with equal constraints: they may use the same nodes in the same way.
struct Fit {
  Resources needs;
  std::optional<GpuKind> gpus;  // only nodes with this kind of GPUs; absent: any
  std::vector<NodeIndex> nodes;
  std::int64_t slots = 0;             // learners that fit on the nodes if they are empty
  std::int64_t slots_of_largest = 0;  // the same on the node that takes most
  // Obstacles by node, for all nodes; that learners failed on a node is not counted here.
  std::vector<Obstacle> obstacles;
};

enum class DemandLimit { kMaximum, kShards, kProgram, kCap, kSpeed, kEfficiency };

struct Queue {
  const QueueView* view = nullptr;  // never null
  bool exists = true;               // otherwise only jobs name it
  std::vector<JobIndex> jobs;       // the active ones
  bool is_of_pods() const { return view->name == kQueueOfPods; }
  bool admits() const { return exists && view->stop == QueueStop::kNone; }
  // The most that its jobs may have together.
  std::int64_t limit_gpus() const { return view->limit_gpus.value_or(INT64_MAX); }
};

struct Job {
  const JobView* view = nullptr;
  bool is_pod = false;  // not a job: a pending pod of another workload, which wants one learner
  bool active = false;  // takes part in the sharing: neither suspended nor finished
  QueueIndex queue = 0;
  int fit = 0;
  // Alternatives, the best one first: a bitwise job without learners has one for each further kind
  // of GPUs.
  std::vector<int> other_fits;
  std::optional<int> budget;  // of its namespace; absent: it has none
  std::int64_t weight = 1;    // among the jobs of its queue
  // Absent: it shares as if its speed were in proportion to its learners.
  std::optional<SizesBySpeed> speeds;
  LearnerCount minimum = 1;
  LearnerCount demand = 1;
  LearnerCount usable = 1;  // the part of the demand that fits, and that its namespace may have
  DemandLimit limit = DemandLimit::kMaximum;
  LearnerCount present = 0;              // learners that do not leave, wherever they are
  std::vector<const LearnerView*> held;  // learners that may stay, those to keep first at the front
  std::vector<HeldAt> held_at;   // the same by node, in the order of each node's first learner
  std::optional<DemandCap> cap;  // to be returned with the next snapshot
  LearnerCount withdrawn = 0;    // learners found now that did not start in time
  // not shrunk below this size: it is in its minimum runtime
  std::optional<LearnerCount> protected_size;
  std::optional<LearnerCount> frozen_size;  // kept at this size: it is in its cooldown
  bool yields = false;  // takes only GPUs that no other job wants: see JobShare::yields_until

  bool admitted_before() const { return view->share.desired > 0 || present > 0; }
  const Resources& needs() const { return view->needs.resources; }
  LearnerCount StartedAt(NodeIndex node) const;
  LearnerCount HeldOn(NodeIndex node) const;
};

// One pool of a snapshot.
struct PoolScope {
  PoolView pool;
  bool exists = true;              // otherwise only queues, nodes or jobs name it
  std::vector<GpuBudget> budgets;  // what other pools leave of the snapshot's
};

struct Model {
  const ClusterSnapshot* snapshot = nullptr;
  PoolView pool;
  bool pool_exists = true;
  std::vector<Node> nodes;  // by name
  std::unordered_map<std::string_view, NodeIndex> node_indexes;
  Topology topology;
  std::vector<Job> jobs;                    // by key
  std::vector<Queue> queues;                // by name
  std::deque<QueueView> implied_queues;     // those that only jobs name
  std::deque<JobView> pending_pods;         // as jobs of the queue kQueueOfPods
  std::deque<SpeedCurve> efficient_speeds;  // of jobs with a minimum efficiency
  std::vector<Fit> fits;
  std::vector<GpuBudget> budgets;
  std::int64_t capacity_gpus = 0;
  std::optional<WallTime> again_at;

  std::int64_t GpusOf(JobIndex job, LearnerCount learners) const {
    return learners * jobs[job].needs().gpus;
  }
  const Queue& QueueOf(JobIndex job) const { return queues[jobs[job].queue]; }
  // Every node on which a learner of the pool's jobs is has an index.
  NodeIndex NodeNamed(std::string_view name) const { return node_indexes.find(name)->second; }
};

// Only what belongs to the pool enters the model; learners of other pools take room on its nodes.
Model MakeModel(const ClusterSnapshot& snapshot, const PoolScope& scope, const Policy& policy,
                FitMemory& memory);

}  // namespace pliant::planner
