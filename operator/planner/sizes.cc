#include "operator/planner/sizes.h"

#include <algorithm>

#include "base/divide.h"

namespace pliant::planner {
LearnerCount ShardLimit(const JobView& job) {
  return std::max(1, job.logical_shards / static_cast<int>(job.needs.resources.gpus));
}

std::optional<LearnerCount> NextFasterSize(const JobView& job, LearnerCount learners) {
  if (job.reproducibility == Reproducibility::kStatistical || learners == 0) return learners + 1;
  const int gpus = static_cast<int>(job.needs.resources.gpus);
  const int busiest = DivideUp(job.logical_shards, learners * gpus);
  if (busiest <= 1) return std::nullopt;
  return DivideUp(DivideUp(job.logical_shards, busiest - 1), gpus);
}

}  // namespace pliant::planner
