#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::simulator {

// Policies to compare with, which plan in rounds.
enum class Baseline { kTiresias, kOptimus, kStrict };

// The queues have the policies that the scenario writes.
struct AsWritten {
  bool operator==(const AsWritten&) const = default;
};

// One run of each workload.
struct RunPolicy {
  std::string name;  // as people write it
  std::variant<AsWritten, planner::QueuePolicy, Baseline> what;
  bool operator==(const RunPolicy&) const = default;
};

// An error is a sentence that lists the known names, and says which of them is nearest.
Result<RunPolicy> ParsePolicy(std::string_view text);

}  // namespace pliant::simulator
