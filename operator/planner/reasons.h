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
  const std::optional<NodeRequest>& nodes;
};

Reason WhyThisSize(const ReasonFacts& facts);

}  // namespace pliant::planner
