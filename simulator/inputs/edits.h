#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "operator/replay/explain.h"
#include "simulator/inputs/node_groups.h"

// "What if" edits of a live cluster's snapshot.
namespace pliant::simulator {

struct WeightChange {
  int weight = 100;
  bool operator==(const WeightChange&) const = default;
};
struct GuaranteeChange {
  std::int64_t gpus = 0;
  bool operator==(const GuaranteeChange&) const = default;
};
struct LimitChange {
  std::optional<std::int64_t> gpus;  // absent: no limit
  bool operator==(const LimitChange&) const = default;
};
struct LendingLimitChange {
  std::optional<std::int64_t> gpus;  // absent: all may be lent
  bool operator==(const LendingLimitChange&) const = default;
};
struct BiasChange {
  bool favors_short_jobs = false;
  bool operator==(const BiasChange&) const = default;
};
using QueueChange = std::variant<WeightChange, GuaranteeChange, LimitChange, LendingLimitChange,
                                 planner::QueuePolicy, BiasChange, planner::QueueStop>;
struct EditQueue {
  std::string queue;
  QueueChange change;
  bool operator==(const EditQueue&) const = default;
};

struct PriorityChange {
  int priority = 5000;
  bool operator==(const PriorityChange&) const = default;
};
struct MinLearnersChange {
  planner::LearnerCount learners = 1;
  bool operator==(const MinLearnersChange&) const = default;
};
struct MaxLearnersChange {
  planner::LearnerCount learners = 1;
  bool operator==(const MaxLearnersChange&) const = default;
};
struct SuspensionChange {
  bool suspended = false;
  bool operator==(const SuspensionChange&) const = default;
};
using JobChange =
    std::variant<PriorityChange, MinLearnersChange, MaxLearnersChange, SuspensionChange>;
struct EditJob {
  replay::JobName job;
  JobChange change;
  bool operator==(const EditJob&) const = default;
};

// Adds ready nodes to a pool. Their labels, CPU and memory are those of the first node of the pool,
// so that the pods of its jobs fit; of a pool without nodes, ample CPU and memory.
struct AddNodes {
  NodeGroup group;
  std::string pool{planner::kBuiltInPool};
  bool operator==(const AddNodes&) const = default;
};

// Removes a node from all of its pools. The learners on it are lost.
struct RemoveNode {
  std::string node;
  bool operator==(const RemoveNode&) const = default;
};

struct Edit {
  std::string text;  // for errors
  std::variant<EditQueue, EditJob, AddNodes, RemoveNode> change;
  bool operator==(const Edit&) const = default;
};

// Parses one of
//   queue.research.weight=300       guaranteed=16, limit=32 or none, lendingLimit=4 or none,
//                                   policy=Throughput, bias=ShortJobs, stop=Drain
//   job.team-a/resnet.priority=100  minLearners=2, maxLearners=16, suspended=true
//   nodes+=2x8, nodes+=2x8@pool     2 nodes of 8 GPUs each
//   nodes-=gpu-1
// An error names the edit and the remedy.
Result<Edit> ParseEdit(std::string_view text);
Result<std::vector<Edit>> ParseEdits(std::span<const std::string> texts);

// The snapshot after the edits, in their order. An edit of queue `default` creates it if it is only
// built in. kInvalid names the edit, and what there is instead of what it names. The result can be
// planned.
Result<planner::ClusterSnapshot> Apply(planner::ClusterSnapshot snapshot,
                                       std::span<const Edit> edits);

}  // namespace pliant::simulator
