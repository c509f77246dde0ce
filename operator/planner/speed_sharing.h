#pragma once

#include <cstdint>
#include <deque>

#include "operator/planner/model.h"

namespace pliant::planner {

// The weight of the job among those of `queue`: its priority. If the queue favors short jobs, that
// times (1 h / alone_seconds)^¼, within ¼ and 2 and in steps of 2^¼.
std::int64_t WeightOf(const JobView& job, const QueueView& queue);

// Lowers the demand of the job to its largest size that is efficient enough and, if `queue` looks
// at speeds and that of the job is not in proportion to its learners, to its fastest size. Then
// sets Job::speeds. `efficient_speeds` gets the curve of a job with a minimum efficiency, and
// outlives it.
void LimitBySpeed(const QueueView& queue, std::deque<SpeedCurve>& efficient_speeds, Job& job);

// The fastest size up to `learners`, but at least the minimum; the largest efficient one if the job
// has no speeds.
LearnerCount UsefulLearners(const Job& job, LearnerCount learners);

}  // namespace pliant::planner
