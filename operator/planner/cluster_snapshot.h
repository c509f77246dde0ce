#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "operator/planner/speed_curve.h"

// The planner's input: one plain value that the controller builds from its stores. It compares and
// prints, so that a test, a log and a replay show the same thing.
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
std::string ToString(const JobKey& key);  // "team-a/resnet"
std::ostream& operator<<(std::ostream& out, const JobKey& key);

// Resources that a pod uses or a node offers.
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

// A number that changes whenever the labels or taints of a node may have changed, and that differs
// between nodes; 0: unknown. Comparing nodes ignores it.
struct NodeVersion {
  std::uint64_t number = 0;
  bool operator==(const NodeVersion&) const { return true; }
};

// The pool of queues and nodes that name none, and the queue of jobs that name none. Both exist if
// no object defines them.
inline constexpr std::string_view kBuiltInPool = "default";
inline constexpr std::string_view kBuiltInQueue = "default";

inline constexpr int kMaxTopologyKeys = 4;

// Nodes whose GPUs the same queues share. Each pool is planned by itself.
struct PoolView {
  std::string name{kBuiltInPool};
  // The extended resource that counts as GPU on its nodes; "": that of the operator.
  std::string resource;
  std::int64_t reserved_gpus = 0;  // GPUs that jobs leave free
  // Labels of which nodes near each other have the same value, the widest domains first: zones,
  // then networks of NVLink. The planner uses the first kMaxTopologyKeys.
  std::vector<std::string> topology_keys{"topology.kubernetes.io/zone", "nvidia.com/gpu.clique"};
  bool requests_nodes = false;  // whether a node autoscaler may add nodes for jobs that wait
  bool yields = false;          // whether jobs shrink so that pending pods fit
  bool operator==(const PoolView&) const = default;
};

// The label to which a learner's affinity pins it. Its value need not be the node's name.
inline constexpr char kHostnameLabel[] = "kubernetes.io/hostname";

// Names the product of a node's GPUs. Nodes without it count as one product of their own.
inline constexpr char kGpuProductLabel[] = "nvidia.com/gpu.product";
// Names the version of a node's GPU driver. Nodes without it count as one version of their own.
inline constexpr char kGpuDriverLabel[] = "nvidia.com/cuda.driver-version.full";

// The namespaces whose pods use most of a node's foreign GPUs, CPU and memory; "": none does.
struct ForeignUsers {
  std::string gpus;
  std::string cpu;
  std::string memory;
  bool operator==(const ForeignUsers&) const = default;
};

// A node whose GPUs of two kinds belong to two pools is there twice.
struct NodeView {
  std::string name;
  std::string pool{kBuiltInPool};  // "": none, its GPUs are for nobody
  Resources allocatable;
  // Used by all pods bound (or nominated) to the node that are not learners: pods of other
  // workloads, daemons, coordinators.
  Resources foreign;
  ForeignUsers foreign_users;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool ready = true;
  bool schedulable = true;  // not cordoned
  NodeVersion version;
  bool operator==(const NodeView&) const = default;
};

struct Toleration {
  std::string key;      // empty, with `exists`: every key
  std::string value;    // ignored if `exists`
  std::string effect;   // empty: every effect
  bool exists = false;  // operator Exists; otherwise Equal
  auto operator<=>(const Toleration&) const = default;
};

enum class NodeOperator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
std::string_view ToString(NodeOperator op);

// One matchExpression over a node's labels.
struct NodeRequirement {
  std::string key;
  NodeOperator op = NodeOperator::kIn;
  std::vector<std::string> values;
  auto operator<=>(const NodeRequirement&) const = default;
};

// The needs of a learner's pod on its node. The planner understands these scheduling rules of a
// template: resource requests (GPUs, CPU, memory), tolerations, nodeSelector, and the
// matchExpressions of required node affinity. It leaves the others (matchFields, affinity between
// pods, topology spread, other extended resources) to the scheduler: a pod that the scheduler
// cannot place does not start, and its grant is withdrawn.
struct PodNeeds {
  Resources resources;  // `gpus` is the job's gpusPerLearner
  std::vector<Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
  std::vector<std::vector<NodeRequirement>>
      node_affinity;  // one term must hold with all of its requirements; empty: any node
  auto operator<=>(const PodNeeds&) const = default;
};

// Needs that several holders share; they compare by value.
struct SharedNeeds {
  std::shared_ptr<const PodNeeds> needs;  // null: not known

  const PodNeeds& OrNone() const {
    static const PodNeeds none;
    return needs == nullptr ? none : *needs;
  }
  bool operator==(const SharedNeeds& other) const {
    if (needs == nullptr || other.needs == nullptr) return needs == other.needs;
    return needs == other.needs || *needs == *other.needs;
  }
};

// Where new learners of a job go.
enum class PlacementPolicy {
  kPack,    // near each other: exchanging gradients is fastest
  kSpread,  // far from each other: the loss of a node or a rack costs few of them
};
std::string_view ToString(PlacementPolicy policy);

enum class Reproducibility { kBitwise, kStatistical };
std::string_view ToString(Reproducibility reproducibility);

enum class LearnerState {
  kGated,     // created but not bound: it holds no GPU yet, only a claim on its planned node
  kStarting,  // its gate is open: it holds GPUs
  kRunning,   // its container runs
  // asked to leave, or being deleted: it holds its GPUs until its pod has ended, and is no longer
  // part of the job
  kLeaving,
};
std::string_view ToString(LearnerState state);

// A learner pod that has not ended.
struct LearnerView {
  std::string name;
  std::string node;  // where it runs, or is planned to run
  LearnerState state = LearnerState::kGated;
  WallTime created;
  WallTime since;              // when it entered `state`; for kStarting: when its gate was opened
  bool member = false;         // whether it is in the newest membership
  bool refused = false;        // kGated: the API server refused to open its gate
  bool unschedulable = false;  // kStarting: the scheduler finds no node for it
  bool operator==(const LearnerView&) const = default;
};

// A job whose granted learners did not start in time may not demand more than `learners` until
// `until`.
struct DemandCap {
  LearnerCount learners = 0;
  WallTime until;
  int strikes = 1;      // times in a row that this happened: each doubles the duration
  std::string cause{};  // why learners did not start, as far as it is known
  bool operator==(const DemandCap&) const = default;
};

// A node on which the job's pods failed.
struct AvoidedNode {
  std::string node;
  WallTime until;
  bool operator==(const AvoidedNode&) const = default;
};

enum class QueuePolicy {
  kFairShare,  // its jobs share by priority, which is a weight
  kPriority,   // a job of a higher priority gets all that it can use before the next one grows
  kFifo,       // the same, in the order in which they were submitted
  // Its jobs share by priority and by what more GPUs add to their measured speed.
  kThroughput,
};
std::string_view ToString(QueuePolicy policy);

enum class QueueStop {
  kNone,
  kHold,   // no job is admitted; admitted ones continue
  kDrain,  // admitted jobs are released too: they write a checkpoint and wait
};
std::string_view ToString(QueueStop stop);

// A share of a pool's GPUs, which the jobs of the queue divide among themselves.
struct QueueView {
  std::string name{kBuiltInQueue};
  std::string pool{kBuiltInPool};
  int weight = 100;  // at least 1; relative to the other queues
  // GPUs that it gets back from others as soon as it can use them.
  std::int64_t guaranteed_gpus = 0;
  std::optional<std::int64_t> limit_gpus;  // maximum of its jobs together; absent: no limit
  // Maximum of guaranteed GPUs that others may use while it does not; absent: all.
  std::optional<std::int64_t> lending_limit_gpus;
  QueuePolicy policy = QueuePolicy::kFairShare;
  bool strict = false;  // no job passes one that waits before it
  // Whether jobs of other queues are released if their minimums stand in the way of a guarantee.
  bool evicts = true;
  // GPU time that a job has attained counts half after this time.
  Seconds half_life{24 * 3600};
  QueueStop stop = QueueStop::kNone;
  // kThroughput: whether jobs with little work left weigh more.
  bool favors_short_jobs = false;
  bool operator==(const QueueView&) const = default;
};

// The size of a job's training depends on these.
struct JobTraining {
  int logical_shards = 1;  // as frozen in status.training
  SpeedCurve speeds;       // on as few nodes as possible
  // Percent of the speed that is in proportion to the learners. Sizes below it are not taken, if
  // the job's speeds are known. 0: all are taken.
  int min_efficiency = 0;
  Reproducibility reproducibility = Reproducibility::kBitwise;
  // The product of the GPUs on which it began to train; "": none yet. Only a bitwise job has one.
  std::string gpu_product;
  // The time that its training still takes at its present speed; absent: unknown.
  std::optional<std::int64_t> remaining_seconds;
  // The time that it would still take with one learner; absent: unknown.
  std::optional<std::int64_t> alone_seconds;
  // By how many percent its claim to learners that it has counts more in sharing by speed, if that
  // is more than Policy::hold_percent: because a resize of it costs much.
  int hold_percent = 0;
  bool operator==(const JobTraining&) const = default;
};

// A job's turn in its queue.
struct JobWaiting {
  // since when it waits for its first GPU; absent: since it was submitted
  std::optional<WallTime> since;
  // GPU time that it has attained, each second halved with every half-life since then.
  std::int64_t attained_gpu_seconds = 0;
  std::optional<WallTime> attained_at;  // when that was computed; absent: now
  bool operator==(const JobWaiting&) const = default;
};

// The part of the pool that earlier plans gave to a job.
struct JobShare {
  // The size last decided for it, from status.desiredLearners; 0 while it is queued. A job with
  // more than 0 is admitted, even if all of its learners were just lost.
  LearnerCount desired = 0;
  // The minimum with which it was admitted: a minimum that is raised later counts only as far as
  // its share allows. Absent: it is not admitted, or by an operator that did not record it.
  std::optional<LearnerCount> admitted_minimum;
  std::optional<WallTime> started;  // start of its present run: when it last left the queue
  std::optional<WallTime> resized;  // when `desired` last changed while it ran
  std::optional<WallTime>
      below_minimum_since;  // since when it has had fewer learners than its minimum
  // An edit of its owner lowered its claim a moment ago: until then it takes nothing back from
  // those that got its GPUs.
  std::optional<WallTime> yields_until;
  bool operator==(const JobShare&) const = default;
};

struct JobView {
  JobKey key;
  // A queue that the snapshot lacks admits no job, except "default", which then has the defaults of
  // QueueView. Jobs that were admitted before continue.
  std::string queue{kBuiltInQueue};
  // That of its queue. A pool that the snapshot lacks has no nodes, except "default": it has the
  // defaults of PoolView.
  std::string pool{kBuiltInPool};
  // Why its queue does not admit it, a sentence; "": it may. If it was admitted before, it
  // continues.
  std::string queue_refusal;
  int priority = 5000;
  LearnerCount min_learners = 1;
  LearnerCount max_learners = 1;
  std::optional<LearnerCount> learners_asked;  // number of learners that its program requested
  PodNeeds needs;                              // needs.resources.gpus is gpusPerLearner
  PlacementPolicy placement = PlacementPolicy::kPack;
  JobTraining training;

  bool suspended = false;
  bool deleted = false;   // suspended for this reason: its owner has deleted it
  bool finished = false;  // succeeded, or failed permanently

  WallTime submitted;
  JobWaiting waiting;
  JobShare share;
  Seconds min_runtime{0};
  Seconds cooldown{30};
  // The grant of a learner that is kStarting, or refused, for this long is withdrawn.
  Seconds start_timeout{120};
  // Since when the API server refuses to create pods, or to open gates, of learners granted to the
  // job. Absent: it does not refuse.
  std::optional<WallTime> refused_since;
  // Why learners of it have not started, in the words of the scheduler, node or API server; "": not
  // known. For people: no plan depends on it.
  std::string start_problem;

  std::vector<LearnerView> learners;
  std::optional<DemandCap> cap;  // Decision::cap of the previous plan
  std::vector<AvoidedNode> avoided;
  bool operator==(const JobView&) const = default;
};

// The minimum that counts: what a job asks for, but once it is admitted no more than that with
// which it was.
LearnerCount CountedMinimum(LearnerCount asked, std::optional<LearnerCount> admitted);
LearnerCount MinimumOf(const JobView& job);

// Maximum number of GPUs that the jobs of a namespace may hold together. Jobs keep GPUs that they
// already hold.
struct GpuBudget {
  std::string name_space;
  std::int64_t gpus = 0;
  std::string resource{};  // as of a pool
  bool operator==(const GpuBudget&) const = default;
};

// A pod of another workload that asks for GPUs, and for which the scheduler finds no node.
struct PendingPod {
  std::string name_space;
  std::string name;
  std::string resource;  // that `gpus` counts, as of a pool
  std::int64_t gpus = 0;
  SharedNeeds asks;  // without the GPUs
  WallTime since;
  bool operator==(const PendingPod&) const = default;
};

struct ClusterSnapshot;
// The resource that the pool counts as GPUs; "" if no object defines it.
std::string_view ResourceOf(const ClusterSnapshot& snapshot, std::string_view pool);

struct ClusterSnapshot {
  WallTime now;
  std::vector<NodeView> nodes;      // nodes that may offer GPUs; in any order
  std::vector<JobView> jobs;        // all jobs, including finished ones; in any order
  std::vector<GpuBudget> budgets;   // of the namespaces that have one; in any order
  std::vector<QueueView> queues;    // in any order
  std::vector<PoolView> pools;      // in any order
  std::vector<PendingPod> pending;  // in any order
  bool operator==(const ClusterSnapshot&) const = default;
};

}  // namespace pliant::planner
