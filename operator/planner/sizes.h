#pragma once

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

}  // namespace pliant::planner
