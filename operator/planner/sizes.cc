#include "operator/planner/sizes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/divide.h"

namespace pliant::planner {
LearnerCount ShardLimit(const JobView& job) {
  return std::max(1, job.training.logical_shards / static_cast<int>(job.needs.resources.gpus));
}

std::optional<LearnerCount> NextFasterSize(const JobView& job, LearnerCount learners) {
  if (job.training.reproducibility == Reproducibility::kStatistical || learners == 0)
    return learners + 1;
  const int gpus = static_cast<int>(job.needs.resources.gpus);
  const int busiest = DivideUp(job.training.logical_shards, learners * gpus);
  if (busiest <= 1) return std::nullopt;
  return DivideUp(DivideUp(job.training.logical_shards, busiest - 1), gpus);
}

std::int64_t EfficiencyWith(const JobView& job, LearnerCount learners) {
  const std::int64_t in_proportion = std::int64_t{learners} * SpeedWith(job.training.speeds, 1);
  return 100 * std::int64_t{SpeedWith(job.training.speeds, learners)} /
         std::max<std::int64_t>(in_proportion, 1);
}

bool IsEfficient(const JobView& job, LearnerCount learners) {
  if (job.training.min_efficiency == 0 || job.training.speeds.empty()) return true;
  if (learners <= MinimumOf(job)) return true;
  return EfficiencyWith(job, learners) >= job.training.min_efficiency;
}

LearnerCount LargestEfficientSize(const JobView& job, LearnerCount learners) {
  while (!IsEfficient(job, learners)) --learners;
  return learners;
}

std::optional<LearnerCount> NextEfficientSize(const JobView& job, LearnerCount learners,
                                              LearnerCount most) {
  std::optional<LearnerCount> next = NextFasterSize(job, learners);
  while (next && *next <= most && !IsEfficient(job, *next)) next = NextFasterSize(job, *next);
  return next && *next <= most ? next : std::nullopt;
}

SpeedCurve EfficientSpeeds(const JobView& job) {
  SpeedCurve speeds = job.training.speeds;
  for (LearnerCount learners = 1; learners <= std::ssize(speeds); ++learners) {
    if (!IsEfficient(job, learners)) speeds[static_cast<std::size_t>(learners) - 1] = 0;
  }
  return speeds;
}

}  // namespace pliant::planner
