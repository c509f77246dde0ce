#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "trainer/membership/fault_evidence.h"
#include "trainer/membership/membership_history.h"
#include "trainer/membership/messages.h"
#include "trainer/membership/plan.h"
#include "trainer/membership/proposer.h"
#include "trainer/membership/resize_log.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/speed_meter.h"

namespace pliant {

// The parts of the job's progress (GET /v1/progress) that no other class holds. Only this class
// knows whether the job is complete.
class JobReport {
 public:
  explicit JobReport(double unix_offset_seconds) : unix_offset_seconds_(unix_offset_seconds) {}

  const Problem& problem() const { return problem_; }
  void SetProblem(Problem problem, TimePoint now);
  // `compute_seconds`: the longest that a member computed in a tick.
  void SetStats(const Progress::Stats& stats, std::uint64_t step, double compute_seconds,
                TimePoint now);

  // Begins a resize from the learners of `from` (none before the first membership) to those of
  // `to`. `reason`: a sentence, may be empty.
  void BeginResize(Resize::Kind kind, std::string reason, const std::optional<Membership>& from,
                   const Membership& to, TimePoint requested);
  // A learner opened a membership; `was_member`: it was also in the previous one.
  void OnOpened(const Opened& opened, bool was_member);
  void OnAllOpened(MembershipId membership, TimePoint now);
  // Call it when a learner has reported its ticks.
  void UpdateCommitted(const Roster& roster, const MembershipHistory& history, TimePoint now);
  void OnCompleted(const Left& left);
  bool completed() const { return completed_; }
  // Sets whether the last members left with a checkpoint.
  void SetDrained(bool drained) { drained_ = drained; }

  JobProgress Compose(std::uint64_t term, const Roster& roster, const MembershipHistory& history,
                      const Proposer& proposer, const FaultEvidence& faults) const;

 private:
  JobState State(const MembershipHistory& history, const Proposer& proposer,
                 const FaultEvidence& faults) const;
  double Unix(TimePoint time) const {
    return ToSeconds(time.time_since_epoch()) + unix_offset_seconds_;
  }

  const double unix_offset_seconds_;
  bool completed_ = false;
  bool drained_ = false;
  ResizeLog resizes_;
  SpeedMeter speed_;
  Problem problem_;
  TimePoint problem_at_{};  // when it last occurred
  std::string parameters_sha256_;
  std::optional<Progress::Stats> stats_;
  std::optional<Tick> tick_;  // committed, as far as reported
  std::optional<std::uint64_t> step_;
};

}  // namespace pliant
