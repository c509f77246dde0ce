#pragma once

#include "operator/planner/sharing.h"

namespace pliant::planner {

// Gives out GPUs beyond the minimums, learner by learner. First every admitted job gets the largest
// useful size within its entitlement. What sizes and nodes leave over is then lent, up to what jobs
// can use; the next plan starts with entitlements again, so it is taken back first. The next
// learner goes to the queue with the highest claim, and in it to a job by the queue's policy.
// Sets Share::learners, entitled_learners and stopped_by.
void FillUp(const Model& model, const Policy& policy, Protection protection, Sharing& sharing);

}  // namespace pliant::planner
