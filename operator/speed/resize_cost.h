#pragma once

namespace pliant::speed {

// The measured costs of a resize of a job.
struct ResizeCost {
  double start_seconds = 0;  // from the grant of a GPU until its learner trains; ≥ 0
  double pause_seconds = 0;  // for which all learners stand still; ≥ 0
  bool operator==(const ResizeCost&) const = default;
};

// How long what a plan decides stays right. It is the order of the time between arrivals and ends
// of jobs in a busy cluster.
inline constexpr double kHorizonSeconds = 600;

// By how many percent another job's claim to GPUs must exceed the claim of a job that trains on
// them with `learners`, for the move to be worth its cost: from 0 to 100, in steps of 25.
// `remaining_seconds`: the time that the job still takes; infinity: unknown.
//
// The claims d (of the job) and r (of the other) are gains of ln speed per GPU and second. While
// the newcomer starts, d is lost; each pause costs the job's whole rate, which is about d ·
// learners. The move gains (r - d) for the rest of the horizon H. So it is worth its cost if
//   (r - d) (H - start) > d (start + learners · pause),
// that is r / d > 1 + (start + learners · pause) / (H - start). H ends with the job, which then
// gives its GPUs back anyway.
int HoldPercent(const ResizeCost& cost, int learners, double remaining_seconds);

}  // namespace pliant::speed
