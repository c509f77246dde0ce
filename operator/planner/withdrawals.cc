#include "operator/planner/withdrawals.h"

#include <algorithm>

#include "base/earliest.h"

namespace pliant::planner {
namespace {

// A scheduler that finds no node says so within moments; a node may become free within some more.
constexpr Seconds kUnschedulable{20};

// How long a learner may take to start.
Seconds TimeToStart(const JobView& job, const LearnerView& learner) {
  return learner.unschedulable ? std::min(job.start_timeout, kUnschedulable) : job.start_timeout;
}

// Learners whose pods are refused were never created: the job can only have those that are present.
bool RefusedForTooLong(const JobView& job, WallTime now) {
  return job.refused_since && now - *job.refused_since >= job.start_timeout;
}

// Doubled with every strike, without overflow.
Seconds PauseAfter(int strikes, const Policy& policy) {
  Seconds pause = policy.first_cap;
  for (int strike = 1; strike < strikes && pause < policy.longest_cap; ++strike) pause *= 2;
  return std::min(pause, policy.longest_cap);
}

DemandCap CapFor(const JobView& job, LearnerCount learners, bool of_one_grant, const Policy& policy,
                 WallTime now) {
  const int before = job.cap ? job.cap->strikes : 0;
  const int strikes = of_one_grant ? before : before + 1;
  const WallTime until = now + PauseAfter(strikes, policy);
  const bool same_cause = of_one_grant && job.start_problem.empty();
  return {.learners = learners,
          .until = of_one_grant && job.cap->until > now ? job.cap->until : until,
          .strikes = strikes,
          .cause = same_cause ? job.cap->cause : job.start_problem};
}

}  // namespace

bool IsWithdrawn(const JobView& job, const LearnerView& learner, WallTime now) {
  if (learner.state == LearnerState::kGated) {
    return learner.refused && RefusedForTooLong(job, now);
  }
  return learner.state == LearnerState::kStarting &&
         now - learner.since >= TimeToStart(job, learner);
}

Withdrawal WithdrawGrants(const JobView& job, LearnerCount present, const Policy& policy,
                          WallTime now) {
  Withdrawal withdrawal{.cap = job.cap};
  LearnerCount running = 0;
  // The cap was set when the first of its grant was withdrawn.
  bool of_one_grant = job.cap.has_value();
  const WallTime capped_at =
      of_one_grant ? job.cap->until - PauseAfter(job.cap->strikes, policy) : WallTime{};
  for (const LearnerView& learner : job.learners) {
    running += learner.state == LearnerState::kRunning ? 1 : 0;
    if (IsWithdrawn(job, learner, now)) {
      ++withdrawal.learners;
      of_one_grant = of_one_grant && learner.since <= capped_at;
    } else if (learner.state == LearnerState::kStarting) {
      KeepEarliest(learner.since + TimeToStart(job, learner), withdrawal.again_at);
    }
  }
  const bool refused = RefusedForTooLong(job, now);
  if (job.refused_since && !refused) {
    KeepEarliest(*job.refused_since + job.start_timeout, withdrawal.again_at);
  }
  if (withdrawal.learners > 0 || refused) {
    LearnerCount left = present - withdrawal.learners;
    if (running == 0 && left < MinimumOf(job)) left = 0;
    of_one_grant = of_one_grant && withdrawal.learners > 0 && !refused;
    withdrawal.cap = CapFor(job, left, of_one_grant, policy, now);
  } else if (job.cap && job.cap->until <= now && running > job.cap->learners) {
    // More learners run than the cap allowed: the problem is over. Otherwise keep the strikes.
    withdrawal.cap.reset();
  }
  if (withdrawal.cap && withdrawal.cap->until > now) {
    KeepEarliest(withdrawal.cap->until, withdrawal.again_at);
  }
  return withdrawal;
}

}  // namespace pliant::planner
