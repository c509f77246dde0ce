#pragma once

#include <string_view>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

// The planner's enumerations by the names that they have in JSON.
namespace pliant::replay {

using planner::ToString;
std::string_view ToString(planner::NodeOperator op);
std::string_view ToString(planner::LearnerState state);
std::string_view ToString(planner::Reproducibility reproducibility);
std::string_view ToString(planner::QueuePolicy policy);
std::string_view ToString(planner::QueueStop stop);

// The last value of each.
template <typename Enum>
inline constexpr Enum kLast = Enum{};
template <>
inline constexpr auto kLast<planner::NodeOperator> = planner::NodeOperator::kLt;
template <>
inline constexpr auto kLast<planner::LearnerState> = planner::LearnerState::kLeaving;
template <>
inline constexpr auto kLast<planner::Reproducibility> = planner::Reproducibility::kStatistical;
template <>
inline constexpr auto kLast<planner::QueuePolicy> = planner::QueuePolicy::kFifo;
template <>
inline constexpr auto kLast<planner::QueueStop> = planner::QueueStop::kDrain;
template <>
inline constexpr auto kLast<planner::ReasonCode> = planner::ReasonCode::kFinished;
template <>
inline constexpr auto kLast<planner::QueueState> = planner::QueueState::kDrained;

}  // namespace pliant::replay
