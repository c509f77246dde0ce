#include "operator/replay/enum_names.h"

namespace pliant::replay {

std::string_view ToString(planner::NodeOperator op) {
  switch (op) {
    case planner::NodeOperator::kIn:
      return "In";
    case planner::NodeOperator::kNotIn:
      return "NotIn";
    case planner::NodeOperator::kExists:
      return "Exists";
    case planner::NodeOperator::kDoesNotExist:
      return "DoesNotExist";
    case planner::NodeOperator::kGt:
      return "Gt";
    case planner::NodeOperator::kLt:
      return "Lt";
  }
  return "Unknown";
}

std::string_view ToString(planner::LearnerState state) {
  switch (state) {
    case planner::LearnerState::kGated:
      return "Gated";
    case planner::LearnerState::kStarting:
      return "Starting";
    case planner::LearnerState::kRunning:
      return "Running";
    case planner::LearnerState::kLeaving:
      return "Leaving";
  }
  return "Unknown";
}

std::string_view ToString(planner::Reproducibility reproducibility) {
  switch (reproducibility) {
    case planner::Reproducibility::kBitwise:
      return "Bitwise";
    case planner::Reproducibility::kStatistical:
      return "Statistical";
  }
  return "Unknown";
}

std::string_view ToString(planner::QueuePolicy policy) {
  switch (policy) {
    case planner::QueuePolicy::kFairShare:
      return "FairShare";
    case planner::QueuePolicy::kPriority:
      return "Priority";
    case planner::QueuePolicy::kFifo:
      return "Fifo";
  }
  return "Unknown";
}

std::string_view ToString(planner::QueueStop stop) {
  switch (stop) {
    case planner::QueueStop::kNone:
      return "None";
    case planner::QueueStop::kHold:
      return "Hold";
    case planner::QueueStop::kDrain:
      return "Drain";
  }
  return "Unknown";
}

}  // namespace pliant::replay
