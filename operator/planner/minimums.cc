#include "operator/planner/minimums.h"

#include <algorithm>

namespace pliant::planner {

std::optional<LearnerCount> MinimumAfter(const Job& job, const Share& fair, const Share& given) {
  if (!HasPlace(given.standing)) return std::nullopt;
  const JobView& view = *job.view;
  if (!job.admitted_before()) return view.min_learners;
  return std::max(std::min(view.min_learners, fair.entitled_learners), MinimumOf(view));
}

}  // namespace pliant::planner
