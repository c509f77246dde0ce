#pragma once

#include <string>
#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

namespace pliant::simulator {

// Makes plans, and measures the processor time of each. It differs from run to run, so it is not
// part of a report.
class PlanTimes {
 public:
  planner::Plan MakePlan(const planner::ClusterSnapshot& snapshot, const planner::Policy& policy,
                         planner::FitMemory& memory);
  // "333 plans, p50 0.21 ms, p99 1.30 ms of processor time"; "" without plans.
  std::string Sentence() const;

 private:
  std::vector<double> milliseconds_;
};

}  // namespace pliant::simulator
