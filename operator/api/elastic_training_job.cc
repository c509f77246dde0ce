#include "operator/api/elastic_training_job.h"

#include <algorithm>

namespace pliant::api {

std::string_view ToString(JobPhase phase) {
  switch (phase) {
    case JobPhase::kNew:
      return "";
    case JobPhase::kQueued:
      return "Queued";
    case JobPhase::kStarting:
      return "Starting";
    case JobPhase::kRunning:
      return "Running";
    case JobPhase::kResizing:
      return "Resizing";
    case JobPhase::kRecovering:
      return "Recovering";
    case JobPhase::kSuspending:
      return "Suspending";
    case JobPhase::kSuspended:
      return "Suspended";
    case JobPhase::kTerminating:
      return "Terminating";
    case JobPhase::kSucceeded:
      return "Succeeded";
    case JobPhase::kFailed:
      return "Failed";
  }
  return "";
}

const Condition* FindCondition(const JobStatus& status, std::string_view type) {
  const auto found = std::ranges::find(status.conditions, type, &Condition::type);
  return found == status.conditions.end() ? nullptr : &*found;
}

}  // namespace pliant::api
