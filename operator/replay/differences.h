#pragma once

#include <string>
#include <vector>

#include "operator/planner/plan.h"

namespace pliant::replay {

// The fields in which two plans differ, one a line, jobs, queues and pools by their names:
// "decisions[team-a/resnet].to: 3 in the file, 2 now". Empty if and only if WritePlan prints both
// alike.
std::vector<std::string> Differences(const planner::Plan& in_file, const planner::Plan& now);

}  // namespace pliant::replay
