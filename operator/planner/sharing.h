#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/planner/assignment.h"
#include "operator/planner/model.h"
#include "operator/planner/plan.h"

// Decides how many learners each job gets. Their nodes are chosen later; here it only matters that
// they fit somewhere.
namespace pliant::planner {

enum class AdmissionState {
  kInactive,  // suspended or finished
  kAdmitted,  // has its minimum or more
  // was admitted and can no longer have its minimum: it keeps what it has for a while
  kBelowMinimum,
  kReleased,      // the same, for longer than the grace period
  kReclaimed,     // was admitted; another queue got its guaranteed GPUs back
  kCapped,        // waits: its demand is capped below its minimum
  kQueued,        // waits: its minimum is not free
  kQueuedBehind,  // waits: its minimum is not free, and a job before it waits for the same nodes
  kQueueShare,    // waits: its minimum is beyond what its queue is entitled to
  kQueueLimit,    // waits: its minimum would exceed its queue's limit
  kReserved,      // waits: the GPUs that are left are reserved, or not lent
  kAboveLimit,    // its minimum alone is above its queue's limit
  kQueueStopped,  // waits: its queue admits no jobs, or was drained
  kQueueMissing,  // waits: there is no such queue
  kQueueRefused,  // waits: its queue does not admit it
  kPoolMissing,   // waits: its queue's pool does not exist
  kOverBudget,    // waits: its minimum would exceed its namespace's GPU budget
  kNoNodeFits,    // no node could ever run one of its learners
  kTooLarge,      // its minimum would not fit even if no other job ran
};

// Whether the job has learners in the plan.
inline bool HasPlace(AdmissionState state) {
  return state == AdmissionState::kAdmitted || state == AdmissionState::kBelowMinimum;
}

// Whether the job has a turn in its queue, and can be admitted once GPUs are free.
inline bool WaitsInQueue(AdmissionState state) {
  return state == AdmissionState::kQueued || state == AdmissionState::kQueuedBehind ||
         state == AdmissionState::kQueueShare || state == AdmissionState::kQueueLimit ||
         state == AdmissionState::kReserved;
}

// Whether the present nodes never take its minimum.
inline bool FitsNoNodes(AdmissionState state) {
  return state == AdmissionState::kNoNodeFits || state == AdmissionState::kTooLarge;
}

// Why an admitted job does not get one more learner.
enum class StoppedBy {
  kDemand,      // it does not want more
  kOthers,      // the next GPU went to another job, or none is left
  kSizes,       // GPUs are left, but too few for the next faster size
  kNodes,       // GPUs were left, on nodes that it cannot use
  kBudget,      // its namespace may not hold more GPUs
  kQueueLimit,  // its queue may not hold more GPUs
  kReserved,    // the GPUs that are left are not for it
};

struct Share {
  AdmissionState standing = AdmissionState::kInactive;
  LearnerCount learners = 0;
  StoppedBy stopped_by = StoppedBy::kDemand;
  std::int64_t entitled_gpus = 0;  // its part of its queue's entitlement, before sizes and nodes
  // Learners within its entitlement; what it has beyond is left over by others.
  LearnerCount entitled_learners = 0;
  // For a job that waits: how much of its minimum could be had at once; how many jobs of its queue
  // are before it.
  std::int64_t attainable_gpus = 0;
  int jobs_before = 0;
  std::optional<JobIndex> reclaimed_for;  // with kReclaimed: the job that needs its GPUs
};

struct QueueShares {
  std::int64_t demand_gpus = 0;  // of its jobs together, as far as its limit allows
  std::int64_t kept_gpus = 0;    // minimums of its admitted jobs
  std::int64_t entitled_gpus = 0;
  // That no job of it may take: those reserved, and those that other queues do not lend.
  std::int64_t withheld_gpus = 0;
};

struct Sharing {
  std::vector<Share> shares;  // by job
  std::vector<QueueShares> queues;
  Assignment assignment;             // one way to place them
  std::optional<WallTime> again_at;  // when the passing of time alone changes the sharing
};

// Which jobs a sharing protects.
enum class Protection {
  kNobody,          // the fair sharing
  kFresh,           // jobs in their minimum runtime are not shrunk
  kFreshAndFrozen,  // and jobs in their cooldown are not changed
};

Sharing ShareOut(const Model& model, const Policy& policy, Protection protection);

}  // namespace pliant::planner
