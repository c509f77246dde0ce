#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "operator/planner/cluster_snapshot.h"

// The planner's output: one decision for every job, always with a reason.
namespace pliant::planner {

class FitMemory;

// The cluster's rules. A job's own settings are in its JobView.
struct Policy {
  Seconds first_cap{
      // after a withdrawn grant the job may not demand more learners than did start, for this long;
      // doubled each time
      60};
  Seconds longest_cap{1800};
  Seconds below_minimum_grace{
      300};  // after it a job that cannot have its minimum is checkpointed, released and queued
  // Idle GPUs that are too few for the job that waits for them go to jobs behind it. After it has
  // waited for `reserve_after` they are reserved for it during `reserve_for`; then this repeats,
  // and they are reserved twice as long each time.
  Seconds reserve_after{3600};
  Seconds reserve_for{1800};
  // GPUs are kept free for a pending pod for `yield_for`, then not for `yield_pause`; then this
  // repeats, with pauses twice as long each time: the scheduler may have other reasons not to bind
  // it.
  Seconds yield_for{600};
  Seconds yield_pause{600};
  // A job that has waited for this long requests nodes: often GPUs become free sooner.
  Seconds request_nodes_after{10};
  // QueuePolicy::kThroughput: the claim of a job to learners that it has counts this much more, so
  // that learners do not move for little.
  int hold_percent = 25;
  bool operator==(const Policy&) const = default;
};

enum class ReasonCode {
  kFairShare,       // its share by priority
  kBelowShare,      // minimums of others in its queue are above their shares
  kMaximum,         // its maxLearners
  kMinimum,         // its minimum, which is above its share
  kNoFasterSize,    // the next sizes would not be faster; the rest goes to others
  kMinEfficiency,   // with more learners its efficiency would be below its minEfficiency
  kShardLimit,      // all that its logical shards can use, less than maxLearners
  kProgramAsked,    // all that its program requested, less than maxLearners
  kNodesFull,       // its share is larger, but the nodes that fit it are full
  kQuota,           // its namespace may not hold more GPUs
  kCooldown,        // was resized less than its cooldown ago
  kMinRuntime,      // is in its minimum runtime
  kYields,          // its owner's edit gave GPUs to others a moment ago, and they keep them
  kGrantWithdrawn,  // learners granted to it did not start
  kBelowMinimum,    // its minimum no longer fits; keeps what it has for a while
  kReleased,        // was below its minimum for too long: checkpointed and queued
  kReclaimed,       // another queue got its guaranteed GPUs back: checkpointed and queued
  kBorrowed,        // its share, and GPUs that others leave over
  kReserved,        // the GPUs that are left are reserved or not lent
  kQueueLimit,      // its queue may not hold more GPUs
  kQueued,          // its minimum is not free
  kQueuedBehind,    // another waiting job is before it
  kQueueShare,      // its minimum is beyond its queue's share
  kQueueStopped,    // its queue admits no jobs
  kQueueMissing,    // there is no such queue
  kQueueRefused,    // its queue does not admit it, for example for its namespace
  kPoolMissing,     // its queue's pool does not exist
  kNoNodeFits,      // no node could ever run one of its learners
  kNodesTaken,      // pods of others take the room of all nodes that could run one
  kTooLarge,        // its minimum would not fit the empty cluster
  kSuspended,
  kFinished,
};
// The reasons of jobs that have no learners and are not suspended.
inline constexpr ReasonCode kReasonsToWait[] = {
    ReasonCode::kGrantWithdrawn, ReasonCode::kReleased,     ReasonCode::kReclaimed,
    ReasonCode::kReserved,       ReasonCode::kQueueLimit,   ReasonCode::kQuota,
    ReasonCode::kQueued,         ReasonCode::kQueuedBehind, ReasonCode::kQueueShare,
    ReasonCode::kQueueStopped,   ReasonCode::kQueueMissing, ReasonCode::kQueueRefused,
    ReasonCode::kPoolMissing,    ReasonCode::kNoNodeFits,   ReasonCode::kNodesTaken,
    ReasonCode::kTooLarge};
std::string_view ToString(ReasonCode code);  // "FairShare": for conditions, events and metrics
std::ostream& operator<<(std::ostream& out, ReasonCode code);

// The limit that keeps a job that has a place from more learners, once cooldowns and minimum
// runtimes have ended.
enum class GrowthLimit {
  kNone,           // it has no place: its reason says why
  kMaximum,        // its maxLearners
  kShards,         // its logical shards
  kProgram,        // the number that its program requested
  kSpeed,          // more would not be faster
  kEfficiency,     // its minEfficiency
  kStartFailures,  // learners granted to it did not start
  kOthers,         // the next GPU went to another job, or none is left
  kSizes,          // too few GPUs are left for its next faster size
  kNodes,          // the GPUs that are left are on nodes that it cannot use
  kQuota,          // its namespace may not hold more
  kQueueLimit,     // its queue may not hold more
  kReserved,       // the GPUs that are left are not for it
};
std::string_view ToString(GrowthLimit limit);

struct Reason {
  ReasonCode code = ReasonCode::kFairShare;
  // "3 of 8 GPUs: fair share 1/3 by priority 5000 of 15000 in queue default". Changes only with its
  // facts, never with time alone.
  std::string sentence;
  bool operator==(const Reason&) const = default;
};

// A learner to create.
struct NewLearner {
  std::string node;
  std::string hostname;  // the node's kHostnameLabel; "": it has none
  // The quotas of its namespace have no room for its pod before others have ended.
  bool waits_for_quota = false;
  bool operator==(const NewLearner&) const = default;
};

// Nodes that a node autoscaler should add for a job that waits.
struct NodeRequest {
  LearnerCount learners = 0;  // with room for this many of its learners that idle GPUs do not have
  std::string gpu_product;    // with GPUs of this product only; "": of any
  bool operator==(const NodeRequest&) const = default;
};

// The verdict on one job. `to` == keep.size() + create.size(); keep and drop together are the job's
// learners that are not already leaving.
struct Decision {
  JobKey job;
  LearnerCount from = 0;  // learners it has, including gated and excluding leaving ones
  LearnerCount to = 0;    // learners it is to have
  // Its part of its queue's share, before sizes and nodes are considered. Ignores cooldowns and
  // minimum runtimes, as does `entitlement`.
  std::int64_t entitled_gpus = 0;
  LearnerCount entitlement = 0;  // learners that it has within that share
  LearnerCount demand = 0;       // maximum it could use now
  GrowthLimit limited_by = GrowthLimit::kNone;
  std::optional<int> jobs_before;  // of its queue; absent: it has no turn there
  // The queue to whose job its GPUs go, because they are guaranteed there; "": it is not evicted.
  std::string reclaimed_by;
  // To be passed as JobShare::admitted_minimum of the next snapshot; absent: it has no place.
  std::optional<LearnerCount> minimum;
  std::vector<std::string> keep;   // by name
  std::vector<std::string> drop;   // by name
  std::vector<NewLearner> create;  // gated pods to create, each for its node; sorted by node
  // The product of its learners' GPUs; "": unknown, or it may use several.
  std::string gpu_product;
  // Estimates, without effect on any plan. Absent: unknown.
  std::optional<WallTime> starts_at;  // when it will have its minimum, if it waits
  std::optional<WallTime> ends_at;    // if it runs
  std::optional<NodeRequest> nodes;   // absent: it needs none, or the pool requests none
  // To be passed as JobView::cap of the next snapshot; absent: there is none.
  std::optional<DemandCap> cap;
  Reason reason;
  bool operator==(const Decision&) const = default;

  bool ChangesNothing() const { return drop.empty() && create.empty(); }
};
std::ostream& operator<<(std::ostream& out, const Decision& decision);

enum class QueueState {
  kIdle,            // no job wants GPUs
  kServed,          // has all that its jobs can use
  kShared,          // has its share; its jobs could use more
  kBelowGuarantee,  // has less than its guarantee, although its jobs could use it
  kAtLimit,         // has what its limit allows
  kHeld,            // admits no jobs
  kDrained,         // has released its jobs
};
std::string_view ToString(QueueState state);  // "BelowGuarantee": for conditions
std::ostream& operator<<(std::ostream& out, QueueState state);

// The part of the pool that one queue gets, in GPUs.
struct QueueShare {
  std::string queue;
  std::string pool;
  std::int64_t demand = 0;     // of its jobs together, as far as its limit allows
  std::int64_t entitled = 0;   // its share of the pool
  std::int64_t allocated = 0;  // assigned to its jobs
  std::int64_t borrowed = 0;   // of these, guaranteed to queues that do not use them now
  std::int64_t lent = 0;       // guaranteed to it and assigned to others
  int running = 0;             // jobs with learners
  int waiting = 0;             // jobs without, though not suspended
  QueueState state = QueueState::kIdle;
  std::string sentence;
  bool operator==(const QueueShare&) const = default;
};
std::ostream& operator<<(std::ostream& out, const QueueShare& share);

// The GPUs of one pool.
struct PoolShare {
  std::string pool;
  bool exists = true;  // otherwise only queues or jobs name it
  std::int64_t nodes = 0;
  std::int64_t capacity = 0;   // to share; without GPUs that other pods use
  std::int64_t allocated = 0;  // assigned to its jobs
  std::int64_t foreign = 0;    // used by other pods
  std::int64_t requested = 0;  // of nodes that a node autoscaler should add
  std::int64_t yielded = 0;    // kept free for pods of other workloads that are pending
  bool operator==(const PoolShare&) const = default;
};

// A gated learner whose GPUs are free now.
struct GateOpening {
  JobKey job;
  std::string learner;
  std::string node;
  bool operator==(const GateOpening&) const = default;
};

struct Plan {
  std::vector<Decision> decisions;      // one a job, by key
  std::vector<QueueShare> queues;       // by name: those that exist or have jobs
  std::vector<PoolShare> pools;         // by name: those that exist or are named
  std::vector<GateOpening> gates_open;  // gates to open now, in this order
  std::int64_t capacity_gpus = 0;       // total to share
  // When to plan again even if nothing happens, because a cooldown or a cap ends then.
  std::optional<WallTime> again_at;
  bool operator==(const Plan&) const = default;
};

// The decision on a job; null: it is not planned. Points into `plan`.
const Decision* FindDecision(const Plan& plan, std::string_view name_space, std::string_view name);

// Shares the cluster's GPUs among jobs. The same snapshot always gives the same plan, and once the
// plan is carried out, the next plan changes nothing.
Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy);
// The same plan, faster: pass the `memory` of previous plans.
Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy, FitMemory& memory);

// The gates that may open: of kept learners whose node has their GPUs, CPU and memory free now,
// with the pods of leaving learners still counted. MakePlan puts them into its plan.
std::vector<GateOpening> OpenGates(const ClusterSnapshot& snapshot,
                                   const std::vector<Decision>& decisions);

}  // namespace pliant::planner
