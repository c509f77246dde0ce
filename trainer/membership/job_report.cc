#include "trainer/membership/job_report.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "trainer/membership/fingerprint_keys.h"
#include "trainer/membership/json_fields.h"
#include "trainer/membership/rules.h"

namespace pliant {
namespace {

// Minimum time for which a problem stays reported, so that a recurring one does not flap.
constexpr Duration kProblemKept = std::chrono::minutes(1);

// Not a failure: the learner trains, but on the CPU of a GPU pod.
std::optional<Problem> UnusedGpus(const Roster& roster, const MembershipHistory& history) {
  for (const auto& [id, learner] : roster.learners()) {
    const auto found = learner.fingerprint.find(kFingerprintGpuProblem);
    if (found == learner.fingerprint.end() || !history.IsMember(id)) continue;
    return Problem{.reason = "GpusUnusable", .message = found->second};
  }
  return std::nullopt;
}

LearnerState StateOf(const LearnerRecord& learner, const MembershipHistory& history,
                     const Proposer& proposer) {
  if (learner.refused) return LearnerState::kRefused;
  if (learner.leaving) return LearnerState::kLeaving;
  if (history.IsMember(learner.id)) return LearnerState::kMember;
  return proposer.Proposes(learner.id) ? LearnerState::kPreparing : LearnerState::kReady;
}

}  // namespace

// Two fingerprints may fill a message each, so the text is cut to the length that a learner accepts
// in a refusal.
void JobReport::SetProblem(Problem problem, TimePoint now) {
  problem_ = std::move(problem);
  problem_.message = CutAtCharacter(problem_.message, kMaxTextBytes);
  problem_at_ = now;
}

void JobReport::SetStats(const Progress::Stats& stats, std::uint64_t step, double compute_seconds,
                         TimePoint now) {
  stats_ = stats;
  speed_.OnBatch(stats.batch_size, now);
  if (stats.samples_per_second) {
    speed_.OnReport(step, *stats.samples_per_second, compute_seconds, now);
  }
}

void JobReport::BeginResize(Resize::Kind kind, std::string reason,
                            const std::optional<Membership>& from, const Membership& to,
                            TimePoint requested) {
  speed_.End();
  resizes_.Begin({.membership = to.id,
                  .kind = kind,
                  .reason = std::move(reason),
                  .from = from ? from->learners() : 0,
                  .to = to.learners(),
                  .requested_unix_seconds = Unix(requested),
                  .step = step_.value_or(0)});
}

void JobReport::OnOpened(const Opened& opened, bool was_member) {
  resizes_.Opened(opened.membership,
                  was_member ? std::optional(opened.pause_seconds) : std::nullopt,
                  opened.ticks_lost);
}

void JobReport::OnAllOpened(MembershipId membership, TimePoint now) {
  resizes_.Running(membership, Unix(now), step_.value_or(0));
  speed_.Begin(now);
}

// A tick counts as committed when every member has applied it.
void JobReport::UpdateCommitted(const Roster& roster, const MembershipHistory& history,
                                TimePoint now) {
  if (!history.training() || !history.AllOpened()) return;
  Tick tick = ~Tick{0};
  std::optional<std::uint64_t> step = ~std::uint64_t{0};
  for (const Member& member : history.current()->members) {
    const LearnerRecord& learner = roster.At(member.id);
    tick = std::min(tick, learner.applied_ticks);
    step = std::min(step, learner.step);  // none compares as the lowest
  }
  const bool advanced = tick_ && *tick_ < tick;
  tick_ = tick;
  // Progress after the problem: clear it.
  if (advanced && now - problem_at_ >= kProblemKept) problem_ = {};
  // Members report their ticks before their steps: until then the job must not fall back to step 0.
  if (step) step_ = step;
}

void JobReport::OnCompleted(const Left& left) {
  completed_ = true;
  parameters_sha256_ = left.parameters_sha256;
  tick_ = left.applied_ticks;
  if (stats_) step_ = stats_->total_steps;
}

JobState JobReport::State(const MembershipHistory& history, const Proposer& proposer,
                          const FaultEvidence& faults) const {
  if (completed_) return JobState::kCompleted;
  if (!history.current()) return drained_ ? JobState::kDrained : JobState::kWaiting;
  if (faults.broken_since() || history.by_recovery()) return JobState::kRecovering;
  if (proposer.proposal() || !history.AllOpened()) return JobState::kResizing;
  return history.training() ? JobState::kRunning : JobState::kDrained;
}

JobProgress JobReport::Compose(std::uint64_t term, const Roster& roster,
                               const MembershipHistory& history, const Proposer& proposer,
                               const FaultEvidence& faults) const {
  JobProgress progress{.term = term,
                       .membership = history.current(),
                       .state = State(history, proposer, faults),
                       .plan_accepted = {},
                       .tick = tick_,
                       .step = step_,
                       .stats = stats_,
                       .resizes = resizes_.resizes(),
                       .speed = speed_.speed(),
                       .problem = problem_.reason.empty()
                                      ? UnusedGpus(roster, history).value_or(Problem{})
                                      : problem_,
                       .parameters_sha256 = parameters_sha256_};
  if (roster.plan()) progress.plan_accepted = roster.plan()->version;
  std::vector<std::pair<LearnerId, double>> shard_seconds;
  for (const auto& [id, learner] : roster.learners()) {
    const bool is_member = history.IsMember(id);
    if (!learner.connected() && !learner.refused && !is_member) continue;
    // One entry for all ranks of a learner.
    if (progress.learners.empty() || !SameLearner(progress.learners.back().id, id)) {
      progress.learners.push_back({.id = id,
                                   .state = StateOf(learner, history, proposer),
                                   .step = learner.step.value_or(0)});
    }
    if (!is_member || !learner.times) continue;
    const double seconds = learner.times->shard_seconds;
    // With more learners than shards some compute nothing.
    if (seconds > 0) shard_seconds.emplace_back(id, seconds);
    // For a learner with several ranks, report its slowest one.
    std::optional<TickTimes>& times = progress.learners.back().times;
    if (!times || times->shard_seconds < seconds) times = learner.times;
  }
  progress.slowest = FindSlowest(shard_seconds);
  return progress;
}

}  // namespace pliant
