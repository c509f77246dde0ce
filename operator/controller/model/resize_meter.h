#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "operator/api/time.h"
#include "operator/speed/resize_cost.h"

namespace pliant::controller {

struct JobView;

// Measures what resizes of a job cost.
struct ResizeMeter {
  std::set<std::string>
      starting;  // learners whose gates were seen to open, and that were not members yet
  std::optional<double> start_seconds;  // of the last learners; the newest counts half
  bool operator==(const ResizeMeter&) const = default;
};

// Call it after ObserveClocks. `first_look`: of this leader, which does not know when learners were
// started.
void ObserveResizes(const JobView& view, bool first_look, api::WallTime now, ResizeMeter& meter);

// By how many percent the job's claim to its GPUs counts more, see speed::HoldPercent. 0: nothing
// was measured. `remaining_seconds`: absent: unknown.
int HoldPercentOf(const JobView& view, std::optional<std::int64_t> remaining_seconds);

}  // namespace pliant::controller
