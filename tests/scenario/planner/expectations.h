#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

namespace pliant::planner {

struct Mismatch {
  int line = 0;  // of the expectation
  std::string message;
};

// Compares a plan with what a scenario expects of its jobs and queues. Throws Mistake if that
// cannot be understood.
void CompareJobs(const YAML::Node& expected, const ClusterSnapshot& snapshot, const Plan& plan,
                 std::vector<Mismatch>& mismatches);
void CompareQueues(const YAML::Node& expected, const Plan& plan, std::vector<Mismatch>& mismatches);

// GPUs that are not assigned to any job.
std::int64_t IdleGpus(const Plan& plan);

}  // namespace pliant::planner
