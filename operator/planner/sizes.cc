#include "operator/planner/sizes.h"

#include <algorithm>

namespace pliant::planner {
namespace {

int CeilDiv(int dividend, int divisor) { return (dividend + divisor - 1) / divisor; }

}  // namespace

LearnerCount ShardLimit(const JobView& job) {
  return std::max(1, job.logical_shards / static_cast<int>(job.needs.resources.gpus));
}

std::optional<LearnerCount> NextFasterSize(const JobView& job, LearnerCount learners) {
  if (job.reproducibility == Reproducibility::kStatistical || learners == 0) return learners + 1;
  const int gpus = static_cast<int>(job.needs.resources.gpus);
  const int busiest = CeilDiv(job.logical_shards, learners * gpus);
  if (busiest <= 1) return std::nullopt;
  return CeilDiv(CeilDiv(job.logical_shards, busiest - 1), gpus);
}

}  // namespace pliant::planner
