#pragma once

#include <optional>
#include <vector>

#include "operator/planner/assignment.h"
#include "operator/planner/model.h"

// Who gets how many learners. On which nodes is decided later; here it only matters that there are
// some.
namespace pliant::planner {

enum class AdmissionState {
  kInactive,      // suspended or finished
  kAdmitted,      // has its minimum or more
  kBelowMinimum,  // was admitted and cannot have its minimum any more: it keeps what it has for a
                  // while
  kReleased,      // the same, for too long
  kCapped,        // waits: its demand is capped below its minimum
  kQueued,        // waits: its minimum is not free
  kQueuedBehind,  // the same, and a job before it waits for the same nodes
  kOverBudget,    // waits: its namespace may not hold so many GPUs
  kNoNodeFits,    // no node could ever run one of its learners
  kTooLarge,      // its minimum would not fit even if nobody else were there
};

// Why an admitted job does not get one learner more.
enum class StoppedBy {
  kDemand,  // it does not want more
  kOthers,  // the next GPU was due to another job, or there is none
  kSizes,   // GPUs are left, but too few for the next size that is faster
  kNodes,   // others got more after it, on nodes that it cannot use
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
  std::optional<WallTime> again_at;  // when time alone changes it
};

// Whom a sharing leaves alone.
enum class Protection {
  kNobody,          // what is fair
  kFresh,           // jobs in their minimum runtime are not shrunk
  kFreshAndFrozen,  // and jobs in their cooldown are not changed
};

Sharing ShareOut(const Model& model, const Policy& policy, Protection protection);

}  // namespace pliant::planner
