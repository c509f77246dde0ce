#pragma once

#include <span>
#include <vector>

#include "operator/planner/sharing_round.h"

// The steps of a sharing, in the order in which ShareOut (sharing.cc) takes them.
namespace pliant::planner {

// Admitted jobs keep their minimums, first those that have them, then those that lost nodes, which
// keep what they have for a while. Among these, guarantees go first.
void KeepMinimums(SharingRound& round);

// Divides the pool among the queues, by guarantee and weight: sets Sharing::queues.
void Entitle(SharingRound& round);

// Jobs that lost nodes, but whose queue is guaranteed the GPUs, take them from borrowers.
void RestoreGuaranteed(SharingRound& round);

// Gives protected jobs their present size before other jobs are considered, as far as their queue
// is entitled to it: a job may keep GPUs from others of its queue, but not from other queues.
void Protect(SharingRound& round);

// A job that lost its minimum gets it back before jobs that wait.
void HoldLost(SharingRound& round);

// Admits jobs that wait, as far as their queue is entitled: first from queues that lack guaranteed
// GPUs, which take them from borrowers, then by the queues' claims.
void AdmitWaiting(SharingRound& round);

// Pods of other workloads, to which the pool yields, get what is not guaranteed to anybody.
void Yield(SharingRound& round);

// Jobs that get idle GPUs although another job waits for them. They come last, as when they were
// found, and displace nobody. From here on nothing is held for jobs that wait.
void LetPass(SharingRound& round, std::span<const JobIndex> passing);

// Gives admitted jobs GPUs beyond their minimums, learner by learner: the largest useful size
// within their entitlement. The next learner goes to the queue with the highest claim, and in it to
// a job by the queue's policy. What sizes and nodes leave over is then lent, up to what jobs can
// use; the next plan starts with entitlements again, so it is taken back first. Sets
// Share::learners, entitled_learners and stopped_by.
void FillAndLend(SharingRound& round);

// Call it last. Returns jobs that wait, in order, whose minimums fit into what is left.
std::vector<JobIndex> WhoMayPass(SharingRound& round);

}  // namespace pliant::planner
