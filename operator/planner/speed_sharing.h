#pragma once

#include "operator/planner/model.h"

namespace pliant::planner {

// The curve by which the job takes part in the sharing of `queue`; null: as if its speed were in
// proportion to its learners, because it is, or is not known, or the queue does not look at speeds.
const SpeedCurve* SharedCurve(const JobView& job, const QueueView& queue);

// The weight of the job among those of `queue`: its priority. If the queue favors short jobs, that
// times (1 h / alone_seconds)^¼, within ¼ and 2 and in steps of 2^¼.
std::int64_t WeightOf(const JobView& job, const QueueView& queue);

// Lowers the demand of the job to its fastest size, and sets Job::speeds. `curve` outlives the job.
void ShareBySpeed(const SpeedCurve& curve, Job& job);

// The fastest size up to `learners`, but at least the minimum; `learners` if the job has no speeds.
LearnerCount UsefulLearners(const Job& job, LearnerCount learners);

}  // namespace pliant::planner
