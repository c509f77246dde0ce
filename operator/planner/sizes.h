#pragma once

#include <cstdint>
#include <optional>

#include "operator/planner/cluster_snapshot.h"

// Decides which sizes of a job are worth their GPUs.
namespace pliant::planner {

// Maximum number of learners with at least one shard for each of their GPUs.
LearnerCount ShardLimit(const JobView& job);

// The next larger size that is faster than `learners`; nullopt if there is none. A bitwise job is
// as fast as its busiest GPU, which has ceil(V / GPUs) shards: with 32 shards, 9 and 10 learners
// are no faster than 8, but 11 are.
std::optional<LearnerCount> NextFasterSize(const JobView& job, LearnerCount learners);

// The speed with `learners` in percent of that in proportion to them, rounded down. The speeds of
// the job are known.
std::int64_t EfficiencyWith(const JobView& job, LearnerCount learners);

// Whether JobView::min_efficiency allows the size. It allows the minimum and less.
bool IsEfficient(const JobView& job, LearnerCount learners);

// The largest size up to `learners` that is allowed.
LearnerCount LargestEfficientSize(const JobView& job, LearnerCount learners);

// NextFasterSize, without those that are not allowed; nullopt: none is up to `most`.
std::optional<LearnerCount> NextEfficientSize(const JobView& job, LearnerCount learners,
                                              LearnerCount most);

// The speeds of the job, 0 for sizes that are not allowed.
SpeedCurve EfficientSpeeds(const JobView& job);

}  // namespace pliant::planner
