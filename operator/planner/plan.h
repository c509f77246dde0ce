#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "operator/planner/cluster_snapshot.h"

// What the planner answers: one decision for every job, always with a reason.
namespace pliant::planner {

class FitMemory;

// The cluster's rules. A job's own wishes are in its JobView.
struct Policy {
  Seconds first_cap{
      60};  // for so long its job may not demand more than what did start; doubled each time
  Seconds longest_cap{1800};
  Seconds below_minimum_grace{
      300};  // then a job that cannot have its minimum is checkpointed, released and queued
  // GPUs that are idle, and too few for the job that waits for them, go to jobs behind it; but once
  // it has waited for `reserve_after` they are kept for it for `reserve_for`, then again.
  Seconds reserve_after{3600};
  Seconds reserve_for{1800};
  bool operator==(const Policy&) const = default;
};

enum class ReasonCode {
  kFairShare,       // its share by priority
  kMaximum,         // all that it asks for
  kMinimum,         // its minimum, which is above its share
  kNoFasterSize,    // the next sizes would not be faster; the rest is lent on
  kShardLimit,      // all that its logical shards can use, less than maxLearners
  kProgramAsked,    // all that its program wants, less than maxLearners
  kNodesFull,       // its share is larger, but the nodes that fit it are full
  kQuota,           // its namespace may not hold more GPUs
  kCooldown,        // was resized a moment ago
  kMinRuntime,      // is protected while it is fresh
  kGrantWithdrawn,  // learners granted to it did not start
  kBelowMinimum,    // its minimum does not fit any more; keeps what it has for a while
  kReleased,        // was below its minimum for too long: checkpointed and queued
  kQueued,          // its minimum is not free
  kQueuedBehind,    // another job that waits is before it
  kNoNodeFits,      // no node could ever run one of its learners
  kTooLarge,        // its minimum would not fit the empty cluster
  kSuspended,
  kFinished,
};
std::string_view ToString(ReasonCode code);  // "FairShare": for conditions, events and metrics
std::ostream& operator<<(std::ostream& out, ReasonCode code);

struct Reason {
  ReasonCode code = ReasonCode::kFairShare;
  // "3 of 8 GPUs: fair share 1/3 by priority 5000 of 15000 in queue default". Changes only with its
  // facts, never with the mere passing of time.
  std::string sentence;
  bool operator==(const Reason&) const = default;
};

struct NewLearner {
  std::string node;
  bool operator==(const NewLearner&) const = default;
};

// The verdict on one job. `to` == keep.size() + create.size(); keep and drop together are the job's
// learners that are not already leaving.
struct Decision {
  JobKey job;
  LearnerCount from = 0;           // learners it has, gated ones too, those that leave not
  LearnerCount to = 0;             // learners it is to have
  LearnerCount entitlement = 0;    // what is fair for it, were it not for cooldowns and fresh jobs
  LearnerCount demand = 0;         // the most it could use now
  std::vector<std::string> keep;   // by name
  std::vector<std::string> drop;   // by name
  std::vector<NewLearner> create;  // pods to create, gated, each for its node; by node
  // To be given back as JobView::cap next time; absent: forget it.
  std::optional<DemandCap> cap;
  Reason reason;
  bool operator==(const Decision&) const = default;

  bool ChangesNothing() const { return drop.empty() && create.empty(); }
};
std::ostream& operator<<(std::ostream& out, const Decision& decision);

// A gated learner whose GPUs are free now.
struct GateOpening {
  JobKey job;
  std::string learner;
  std::string node;
  bool operator==(const GateOpening&) const = default;
};

struct Plan {
  std::vector<Decision> decisions;      // one a job, by key
  std::vector<GateOpening> gates_open;  // gates to open at once, in this order
  std::int64_t capacity_gpus = 0;       // what there was to share
  // When the plan may come out differently though nothing happened (a cooldown or a cap ends): plan
  // again then.
  std::optional<WallTime> again_at;
  bool operator==(const Plan&) const = default;
};

// Shares the cluster's GPUs among jobs. The same snapshot always gives the same plan, and a
// snapshot in which the plan is carried out gives a plan that changes nothing.
Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy);
// The same plan, sooner: `memory` is that of the plans before.
Plan MakePlan(const ClusterSnapshot& snapshot, const Policy& policy, FitMemory& memory);

// The gates that may open, of the learners that `decisions` keep: those whose node has their GPUs,
// CPU and memory free this moment, leavers' pods still counted. MakePlan puts them into its plan.
std::vector<GateOpening> OpenGates(const ClusterSnapshot& snapshot,
                                   const std::vector<Decision>& decisions);

}  // namespace pliant::planner
