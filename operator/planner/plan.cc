#include "operator/planner/plan.h"

#include <algorithm>
#include <utility>

namespace pliant::planner {

std::string_view ToString(ReasonCode code) {
  switch (code) {
    case ReasonCode::kFairShare:
      return "FairShare";
    case ReasonCode::kBelowShare:
      return "BelowShare";
    case ReasonCode::kMaximum:
      return "Maximum";
    case ReasonCode::kMinimum:
      return "Minimum";
    case ReasonCode::kNoFasterSize:
      return "NoFasterSize";
    case ReasonCode::kMinEfficiency:
      return "MinEfficiency";
    case ReasonCode::kShardLimit:
      return "ShardLimit";
    case ReasonCode::kProgramAsked:
      return "ProgramAsked";
    case ReasonCode::kNodesFull:
      return "NodesFull";
    case ReasonCode::kQuota:
      return "Quota";
    case ReasonCode::kCooldown:
      return "Cooldown";
    case ReasonCode::kYields:
      return "Yields";
    case ReasonCode::kMinRuntime:
      return "MinRuntime";
    case ReasonCode::kGrantWithdrawn:
      return "GrantWithdrawn";
    case ReasonCode::kBelowMinimum:
      return "BelowMinimum";
    case ReasonCode::kReleased:
      return "Released";
    case ReasonCode::kReclaimed:
      return "Reclaimed";
    case ReasonCode::kBorrowed:
      return "Borrowed";
    case ReasonCode::kReserved:
      return "Reserved";
    case ReasonCode::kQueueLimit:
      return "QueueLimit";
    case ReasonCode::kQueueShare:
      return "QueueShare";
    case ReasonCode::kQueueStopped:
      return "QueueStopped";
    case ReasonCode::kQueueMissing:
      return "QueueMissing";
    case ReasonCode::kQueueRefused:
      return "QueueRefused";
    case ReasonCode::kPoolMissing:
      return "PoolMissing";
    case ReasonCode::kQueued:
      return "Queued";
    case ReasonCode::kQueuedBehind:
      return "QueuedBehind";
    case ReasonCode::kNoNodeFits:
      return "NoNodeFits";
    case ReasonCode::kNodesTaken:
      return "NodesTaken";
    case ReasonCode::kTooLarge:
      return "TooLarge";
    case ReasonCode::kSuspended:
      return "Suspended";
    case ReasonCode::kFinished:
      return "Finished";
  }
  return "Unknown";
}

std::ostream& operator<<(std::ostream& out, ReasonCode code) { return out << ToString(code); }

std::string_view ToString(GrowthLimit limit) {
  switch (limit) {
    case GrowthLimit::kNone:
      return "None";
    case GrowthLimit::kMaximum:
      return "Maximum";
    case GrowthLimit::kShards:
      return "Shards";
    case GrowthLimit::kProgram:
      return "Program";
    case GrowthLimit::kSpeed:
      return "Speed";
    case GrowthLimit::kEfficiency:
      return "Efficiency";
    case GrowthLimit::kStartFailures:
      return "StartFailures";
    case GrowthLimit::kOthers:
      return "Others";
    case GrowthLimit::kSizes:
      return "Sizes";
    case GrowthLimit::kNodes:
      return "Nodes";
    case GrowthLimit::kQuota:
      return "Quota";
    case GrowthLimit::kQueueLimit:
      return "QueueLimit";
    case GrowthLimit::kReserved:
      return "Reserved";
  }
  return "Unknown";
}

std::string_view ToString(QueueState state) {
  switch (state) {
    case QueueState::kIdle:
      return "Idle";
    case QueueState::kServed:
      return "Served";
    case QueueState::kShared:
      return "Shared";
    case QueueState::kBelowGuarantee:
      return "BelowGuarantee";
    case QueueState::kAtLimit:
      return "AtLimit";
    case QueueState::kHeld:
      return "Held";
    case QueueState::kDrained:
      return "Drained";
  }
  return "Unknown";
}

std::ostream& operator<<(std::ostream& out, QueueState state) { return out << ToString(state); }

std::ostream& operator<<(std::ostream& out, const QueueShare& share) {
  return out << share.queue << ": " << share.allocated << " of " << share.demand << " (entitled to "
             << share.entitled << ", borrowed " << share.borrowed << ", lent " << share.lent
             << "), " << share.running << " running, " << share.waiting << " waiting "
             << share.state << ": " << share.sentence;
}

std::ostream& operator<<(std::ostream& out, const Decision& decision) {
  out << decision.job << ": " << decision.from << " -> " << decision.to << " (entitled to "
      << decision.entitled_gpus << " GPUs, wants " << decision.demand << ")";
  for (const std::string& name : decision.keep) out << " =" << name;
  for (const std::string& name : decision.drop) out << " -" << name;
  for (const NewLearner& learner : decision.create) out << " +" << learner.node;
  return out << " " << decision.reason.code << ": " << decision.reason.sentence;
}

const Decision* FindDecision(const Plan& plan, std::string_view name_space, std::string_view name) {
  const std::pair wanted(name_space, name);
  const auto at = std::ranges::lower_bound(plan.decisions, wanted, {}, [](const Decision& each) {
    return std::pair<std::string_view, std::string_view>(each.job.name_space, each.job.name);
  });
  const bool is_there =
      at != plan.decisions.end() && at->job.name_space == name_space && at->job.name == name;
  return is_there ? &*at : nullptr;
}

}  // namespace pliant::planner
