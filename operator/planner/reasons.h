#pragma once

#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/sharing.h"

namespace pliant::planner {

// All that the reason for one job's size depends on.
struct ReasonFacts {
  const Model& model;
  JobIndex job = 0;
  const Share& fair;            // what it would get were nobody protected
  const Share& given;           // what it gets
  std::int64_t priorities = 0;  // of all jobs of its queue that are given something
};

Reason WhyThisSize(const ReasonFacts& facts);

}  // namespace pliant::planner
