#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

// What the planner sees: one value, built by the controller from its stores, with nothing behind
// it. It compares and prints, so that a test, a log and a replay all speak of the same thing.
namespace pliant::planner {

// Wall time, because times such as a job's last resize come from API objects and outlive the
// operator's process. The planner only compares them with `ClusterSnapshot::now`.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;
using Seconds = std::chrono::seconds;
using LearnerCount = int;

struct JobKey {
  std::string name_space;
  std::string name;
  std::string uid;
  auto operator<=>(const JobKey&) const = default;
};
std::ostream& operator<<(std::ostream& out, const JobKey& key);  // "team-a/resnet"

// What one pod takes, or one node offers.
struct Resources {
  std::int64_t gpus = 0;
  std::int64_t cpu_millis = 0;
  std::int64_t memory_bytes = 0;
  auto operator<=>(const Resources&) const = default;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule and NoExecute keep a learner away, PreferNoSchedule does not
  auto operator<=>(const Taint&) const = default;
};

// Another number whenever labels or taints of a node may have changed, and another one for each
// node; 0: nobody counts. It is no part of what a node is.
struct NodeVersion {
  std::uint64_t number = 0;
  bool operator==(const NodeVersion&) const { return true; }
};

struct NodeView {
  std::string name;
  Resources allocatable;
  // Of all pods bound (or nominated) to the node that are not learners: other people's, daemons',
  // coordinators'.
  Resources foreign;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool ready = true;
  bool schedulable = true;  // not cordoned
  NodeVersion version;
  bool operator==(const NodeView&) const = default;
};

struct Toleration {
  std::string key;      // empty with `exists`: every key
  std::string value;    // unless `exists`
  std::string effect;   // empty: every effect
  bool exists = false;  // operator Exists; otherwise Equal
  auto operator<=>(const Toleration&) const = default;
};

enum class NodeOperator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

// One matchExpression over a node's labels.
struct NodeRequirement {
  std::string key;
  NodeOperator op = NodeOperator::kIn;
  std::vector<std::string> values;
  auto operator<=>(const NodeRequirement&) const = default;
};

// What a learner's pod asks of its node. Of a template's scheduling rules these are understood:
// resource requests (GPUs, CPU, memory), tolerations, nodeSelector, and the matchExpressions of
// required node affinity. The others (matchFields, affinity between pods, topology spread, other
// extended resources) are left to the scheduler: a pod that it cannot place does not start, and its
// grant is withdrawn.
struct PodNeeds {
  Resources resources;  // `gpus` is the job's gpusPerLearner
  std::vector<Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
  std::vector<std::vector<NodeRequirement>>
      node_affinity;  // one term must hold, all of its requirements; none: any node
  auto operator<=>(const PodNeeds&) const = default;
};

enum class Reproducibility { kBitwise, kStatistical };

enum class LearnerState {
  kGated,     // created, bound to nothing: it holds no GPU yet, but a claim on its planned node
  kStarting,  // its gate is open: it holds GPUs
  kRunning,   // its container runs
  kLeaving,   // told to go, or being deleted: it holds its GPUs until its pod has ended, and is no
              // part of the job any more
};

// A learner pod that has not ended.
struct LearnerView {
  std::string name;
  std::string node;  // where it runs, or is planned to run
  LearnerState state = LearnerState::kGated;
  WallTime created;
  WallTime since;        // when it entered `state`; for kStarting: when its gate was opened
  bool member = false;   // of the newest membership
  bool refused = false;  // kGated: the API server would not have its gate opened
  bool operator==(const LearnerView&) const = default;
};

// A job whose granted learners did not start may not demand more than `learners` for a while
// (DESIGN §6.5).
struct DemandCap {
  LearnerCount learners = 0;
  WallTime until;
  int strikes = 1;  // how often in a row: each doubles the while
  bool operator==(const DemandCap&) const = default;
};

// A node on which the job's pods failed.
struct AvoidedNode {
  std::string node;
  WallTime until;
  bool operator==(const AvoidedNode&) const = default;
};

struct JobView {
  JobKey key;
  std::string queue = "default";
  int priority = 5000;
  LearnerCount learners_min = 1;
  LearnerCount learners_max = 1;
  std::optional<LearnerCount> learners_asked;  // that its program wants to train on
  int logical_shards = 1;                      // as frozen in status.training
  Reproducibility reproducibility = Reproducibility::kBitwise;
  PodNeeds needs;  // needs.resources.gpus is gpusPerLearner

  bool suspended = false;
  bool finished = false;  // succeeded, failed for good, or being deleted

  WallTime submitted;
  std::optional<WallTime> waiting_since;  // for its first GPU; nothing: since it was submitted
  std::int64_t attained_gpu_seconds = 0;
  // The size last decided for it, 0 while it is queued: from status.desiredLearners. A job with
  // more than 0 is admitted, even if all of its learners were just lost.
  LearnerCount learners_desired = 0;
  std::optional<WallTime> started;  // of its present run: when it last left the queue
  std::optional<WallTime> resized;  // when learners_desired last changed while it ran
  std::optional<WallTime>
      below_minimum_since;  // has had fewer than learners_min learners since then
  Seconds min_runtime{0};
  Seconds cooldown{30};
  // A learner that is kStarting for so long, or refused, is withdrawn.
  Seconds start_timeout{120};
  // Since when the API server refuses what the learners granted to it need: their pods, the opening
  // of their gates. Nothing: it does not.
  std::optional<WallTime> refused_since;

  std::vector<LearnerView> learners;
  std::optional<DemandCap> cap;  // Decision::cap of the plan before
  std::vector<AvoidedNode> avoided;
  bool operator==(const JobView&) const = default;
};

// How many GPUs the jobs of a namespace may hold together. What they hold already they keep.
struct GpuBudget {
  std::string name_space;
  std::int64_t gpus = 0;
  bool operator==(const GpuBudget&) const = default;
};

struct ClusterSnapshot {
  WallTime now;
  std::vector<NodeView> nodes;     // those that may offer GPUs; in any order
  std::vector<JobView> jobs;       // all of them, finished ones too; in any order
  std::vector<GpuBudget> budgets;  // of namespaces that have one; in any order
  bool operator==(const ClusterSnapshot&) const = default;
};

}  // namespace pliant::planner
