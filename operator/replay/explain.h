#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"
#include "operator/replay/debug_snapshot.h"

namespace pliant::replay {

struct JobName {
  std::string name_space;
  std::string name;
  bool operator==(const JobName&) const = default;
};

// Reads "team-a/resnet". kInvalid for anything else.
Result<JobName> ParseJobName(std::string_view text);

// Why the job has its learners, for people: its decision, its queue with all jobs in the order in
// which they are admitted, and its pool. `plan` was made from `snapshot`. kNotFound if the snapshot
// lacks the job.
Result<std::string> Explain(const planner::ClusterSnapshot& snapshot, const planner::Plan& plan,
                            const JobName& job);
// The same for "team-a/resnet".
Result<std::string> Explain(const DebugSnapshot& last, std::string_view job);

}  // namespace pliant::replay
