#include "operator/planner/cluster_snapshot.h"

#include <algorithm>

namespace pliant::planner {

std::string ToString(const JobKey& key) { return key.name_space + "/" + key.name; }

std::ostream& operator<<(std::ostream& out, const JobKey& key) { return out << ToString(key); }

std::string_view ResourceOf(const ClusterSnapshot& snapshot, std::string_view pool) {
  const auto at = std::ranges::find(snapshot.pools, pool, &PoolView::name);
  return at == snapshot.pools.end() ? std::string_view() : at->resource;
}

std::string_view ToString(NodeOperator op) {
  switch (op) {
    case NodeOperator::kIn:
      return "In";
    case NodeOperator::kNotIn:
      return "NotIn";
    case NodeOperator::kExists:
      return "Exists";
    case NodeOperator::kDoesNotExist:
      return "DoesNotExist";
    case NodeOperator::kGt:
      return "Gt";
    case NodeOperator::kLt:
      return "Lt";
  }
  return "Unknown";
}

std::string_view ToString(LearnerState state) {
  switch (state) {
    case LearnerState::kGated:
      return "Gated";
    case LearnerState::kStarting:
      return "Starting";
    case LearnerState::kRunning:
      return "Running";
    case LearnerState::kLeaving:
      return "Leaving";
  }
  return "Unknown";
}

std::string_view ToString(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kPack:
      return "Pack";
    case PlacementPolicy::kSpread:
      return "Spread";
  }
  return "";
}

std::string_view ToString(Reproducibility reproducibility) {
  switch (reproducibility) {
    case Reproducibility::kBitwise:
      return "Bitwise";
    case Reproducibility::kStatistical:
      return "Statistical";
  }
  return "Unknown";
}

std::string_view ToString(QueuePolicy policy) {
  switch (policy) {
    case QueuePolicy::kFairShare:
      return "FairShare";
    case QueuePolicy::kPriority:
      return "Priority";
    case QueuePolicy::kFifo:
      return "Fifo";
    case QueuePolicy::kThroughput:
      return "Throughput";
  }
  return "Unknown";
}

LearnerCount CountedMinimum(LearnerCount asked, std::optional<LearnerCount> admitted) {
  return std::min(asked, admitted.value_or(asked));
}

LearnerCount MinimumOf(const JobView& job) {
  return CountedMinimum(job.min_learners, job.share.admitted_minimum);
}

std::string_view ToString(QueueStop stop) {
  switch (stop) {
    case QueueStop::kNone:
      return "None";
    case QueueStop::kHold:
      return "Hold";
    case QueueStop::kDrain:
      return "Drain";
  }
  return "Unknown";
}

}  // namespace pliant::planner
