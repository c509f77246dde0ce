#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

// A plan with everything that it was made from, as /debug/snapshot shows it: a report of a wrong
// plan that can be replayed.
namespace pliant::replay {

struct DebugSnapshot {
  planner::ClusterSnapshot snapshot;
  planner::Policy policy;
  std::optional<planner::Plan> plan;  // absent in files that somebody wrote by hand
  bool operator==(const DebugSnapshot&) const = default;
};

// The version of the JSON. A reader refuses others, because a field that it does not know may
// change the plan.
inline constexpr int kFormatVersion = 1;
// A cluster of 50,000 jobs and 5,000 nodes has less.
inline constexpr std::size_t kMaxSnapshotBytes = std::size_t{256} << 20;

// All of it, except the uids of jobs, with which others could pass for their owners. Planning needs
// only that they differ, so ReadSnapshot makes up others.
std::string WriteSnapshot(const DebugSnapshot& snapshot);
std::string WritePlan(const planner::Plan& plan);

// kInvalid names the field that is missing, of a wrong type or out of range. What it returns can be
// planned, whoever wrote it.
Result<DebugSnapshot> ReadSnapshot(std::string_view json);

// The uid of a job that was read: "team-a/resnet".
std::string StandInUid(const planner::JobKey& job);

}  // namespace pliant::replay
