#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/api/time.h"

namespace pliant::controller {

struct JobView;

// Since when the learners of a job are in their states, by pod name.
struct LearnerClocks {
  std::map<std::string, api::WallTime> starting_since;    // its gate was opened
  std::map<std::string, api::WallTime> leaving_since;     // it was decided that it leaves
  std::map<std::string, api::WallTime> unnotified_since;  // the same, coordinator unreachable
  std::optional<api::WallTime> below_minimum_since;       // fewer learners than minLearners
  bool operator==(const LearnerClocks&) const = default;
};

void ObserveClocks(const JobView& view, api::WallTime now, LearnerClocks& clocks);

}  // namespace pliant::controller
