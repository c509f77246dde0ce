#include "operator/planner/speed_sharing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "operator/planner/sizes.h"

namespace pliant::planner {
namespace {

// 1000 · 2^(1 - n/4): the factor below 1/16 of an hour, below 1/8, 1/4, ... and from 128 hours.
constexpr std::array<std::int64_t, 13> kShortness{2000, 1682, 1414, 1189, 1000, 841, 707,
                                                  595,  500,  420,  354,  297,  250};
constexpr std::int64_t kShortestSeconds = 3600 / 16;

// Thousandths.
std::int64_t ShortnessOf(const JobView& job) {
  if (!job.training.alone_seconds) return 1000;
  const std::int64_t times =
      std::max<std::int64_t>(*job.training.alone_seconds, 0) / kShortestSeconds;
  const auto octave = std::bit_width(static_cast<std::uint64_t>(times));
  return kShortness[std::min<std::size_t>(octave, kShortness.size() - 1)];
}

// A demand below the minimum, such as that of a cap, stays.
LearnerCount UsefulSize(const SpeedCurve& curve, LearnerCount minimum, LearnerCount learners) {
  return learners <= minimum ? learners : FastestSize(curve, minimum, learners);
}

// Null: the job shares as if its speed were in proportion to its learners, because it is, or is not
// known, or the queue does not look at speeds.
const SpeedCurve* SharedCurve(const JobView& job, const QueueView& queue) {
  if (queue.policy != QueuePolicy::kThroughput || job.training.speeds.empty()) return nullptr;
  return IsLinear(job.training.speeds, job.max_learners) ? nullptr : &job.training.speeds;
}

}  // namespace

std::int64_t WeightOf(const JobView& job, const QueueView& queue) {
  if (queue.policy != QueuePolicy::kThroughput || !queue.favors_short_jobs) return job.priority;
  return job.priority * ShortnessOf(job);
}

void LimitBySpeed(const QueueView& queue, std::deque<SpeedCurve>& efficient_speeds, Job& job) {
  const JobView& view = *job.view;
  const auto lower = [&](LearnerCount demand, DemandLimit limit) {
    if (demand == job.demand) return;
    job.demand = demand;
    if (job.limit == DemandLimit::kCap) return;
    if (job.limit == DemandLimit::kProgram && limit == DemandLimit::kSpeed) return;
    job.limit = limit;
  };
  lower(LargestEfficientSize(view, job.demand), DemandLimit::kEfficiency);
  const SpeedCurve* curve = SharedCurve(view, queue);
  if (curve == nullptr) return;
  if (view.training.min_efficiency > 0)
    curve = &efficient_speeds.emplace_back(EfficientSpeeds(view));
  const LearnerCount fastest = UsefulSize(*curve, job.minimum, job.demand);
  // Not only what it may not have would be faster.
  const bool is_fastest = view.training.min_efficiency == 0 ||
                          UsefulSize(view.training.speeds, job.minimum, job.demand) == fastest;
  lower(fastest, is_fastest ? DemandLimit::kSpeed : DemandLimit::kEfficiency);
  job.speeds.emplace(*curve, job.minimum, job.demand);
}

LearnerCount UsefulLearners(const Job& job, LearnerCount learners) {
  if (job.speeds) return UsefulSize(job.speeds->curve(), job.minimum, learners);
  return LargestEfficientSize(*job.view, learners);
}

}  // namespace pliant::planner
