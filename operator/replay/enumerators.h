#pragma once

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

// The planner's enumerations: in JSON their values have the names that ToString gives them.
namespace pliant::replay {

// The last value of each.
template <typename Enum>
inline constexpr Enum kLast = Enum{};
template <>
inline constexpr auto kLast<planner::NodeOperator> = planner::NodeOperator::kLt;
template <>
inline constexpr auto kLast<planner::LearnerState> = planner::LearnerState::kLeaving;
template <>
inline constexpr auto kLast<planner::PlacementPolicy> = planner::PlacementPolicy::kSpread;
template <>
inline constexpr auto kLast<planner::Reproducibility> = planner::Reproducibility::kStatistical;
template <>
inline constexpr auto kLast<planner::QueuePolicy> = planner::QueuePolicy::kThroughput;
template <>
inline constexpr auto kLast<planner::QueueStop> = planner::QueueStop::kDrain;
template <>
inline constexpr auto kLast<planner::ReasonCode> = planner::ReasonCode::kFinished;
template <>
inline constexpr auto kLast<planner::GrowthLimit> = planner::GrowthLimit::kReserved;
template <>
inline constexpr auto kLast<planner::QueueState> = planner::QueueState::kDrained;

}  // namespace pliant::replay
