#pragma once

#include <optional>

#include "operator/planner/cluster_snapshot.h"

// Which sizes of a job are worth their GPUs.
namespace pliant::planner {

// The most learners that can own a shard with each of their GPUs.
LearnerCount ShardLimit(const JobView& job);

// The next larger size that is faster than `learners`; none if there is no such size. A bitwise job
// is as fast as its busiest GPU, which has ceil(V / GPUs) shards, so that 9 and 10 learners are no
// faster than 8 with 32 shards, but 11 are.
std::optional<LearnerCount> NextFasterSize(const JobView& job, LearnerCount learners);

}  // namespace pliant::planner
