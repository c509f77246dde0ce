#pragma once

#include <optional>
#include <vector>

#include "operator/planner/assignment.h"
#include "operator/planner/model.h"

// Decides how many learners each job gets. Their nodes are chosen later; here it only matters that
// they fit somewhere.
namespace pliant::planner {

enum class AdmissionState {
  kInactive,  // suspended or finished
  kAdmitted,  // has its minimum or more
  // was admitted and can no longer have its minimum: it keeps what it has for a while
  kBelowMinimum,
  kReleased,      // the same, for longer than the grace period
  kCapped,        // waits: its demand is capped below its minimum
  kQueued,        // waits: its minimum is not free
  kQueuedBehind,  // waits: its minimum is not free, and a job before it waits for the same nodes
  kOverBudget,    // waits: its minimum would exceed its namespace's GPU budget
  kNoNodeFits,    // no node could ever run one of its learners
  kTooLarge,      // its minimum would not fit even if no other job ran
};

// Why an admitted job does not get one more learner.
enum class StoppedBy {
  kDemand,  // it does not want more
  kOthers,  // the next GPU went to another job, or none is left
  kSizes,   // GPUs are left, but too few for the next faster size
  kNodes,   // other jobs got more after it, on nodes that it cannot use
  kBudget,  // its namespace may not hold more GPUs
};

struct Share {
  AdmissionState standing = AdmissionState::kInactive;
  LearnerCount learners = 0;
  StoppedBy stopped_by = StoppedBy::kDemand;
};

struct Sharing {
  std::vector<Share> shares;         // by job
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
