#pragma once

#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// Everything that the reason for one job's size depends on.
struct ReasonFacts {
  const Model& model;
  JobIndex job = 0;
  const Share& fair;             // what it would get if no job were protected
  const Share& given;            // what it gets
  const Assignment& assignment;  // of the sharing that gives it
  const QueueShares& queue;      // its queue's
  std::int64_t priorities = 0;   // sum over all jobs of its queue that get learners
  // Whether the minimum of some job of its queue is more than that job's priority would give.
  bool minimums_are_above_shares = false;
  const std::optional<NodeRequest>& nodes;
};

// Whether its minimum is more than its priority, of the sum of `priorities`, gives it of the GPUs
// that its queue is entitled to.
bool MinimumIsAboveShare(const Job& job, std::int64_t priorities, std::int64_t entitled_gpus);

Reason WhyThisSize(const ReasonFacts& facts);

}  // namespace pliant::planner
