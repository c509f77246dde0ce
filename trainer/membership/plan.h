#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/membership/messages.h"
#include "trainer/membership/speed_meter.h"
#include "trainer/membership/types.h"

// The messages between the operator and a job's coordinator (docs/contracts.md §2), as values and
// as JSON.
namespace pliant {

inline constexpr std::size_t kMaxPlanBytes = 1 << 20;
inline constexpr std::size_t kMaxReasonBytes = 1024;

// Orders the plans of a job: by the operator's lease transitions, then by its counter.
struct PlanVersion {
  std::uint64_t lease_transitions = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const PlanVersion&) const = default;
};

enum class WantedState {
  kWanted,   // a member as soon as it is ready
  kLeaving,  // to leave at the next boundary
  kEnded,    // its pod has ended: may be removed at once
};

struct PlannedLearner {
  std::string name;
  std::string pod_uid;
  WantedState state = WantedState::kWanted;
  bool operator==(const PlannedLearner&) const = default;
};

struct Plan {
  PlanVersion version;
  std::vector<PlannedLearner> learners;
  std::string reason;  // a sentence: why it has these learners; empty if the operator gives none
  bool operator==(const Plan&) const = default;
};

// kInvalid, with the field named.
Result<Plan> DecodePlan(std::string_view json);

enum class JobState { kWaiting, kRunning, kResizing, kRecovering, kDrained, kCompleted };
std::string_view ToString(JobState state);

enum class LearnerState { kReady, kPreparing, kMember, kLeaving, kRefused };
std::string_view ToString(LearnerState state);

// The slowest member is reported from this slowdown on.
inline constexpr double kStragglerSlowdown = 1.5;

struct LearnerProgress {
  LearnerId id;
  LearnerState state = LearnerState::kReady;
  std::uint64_t step = 0;
  std::optional<TickTimes> times;  // of a member: of its slowest rank
  bool operator==(const LearnerProgress&) const = default;
};

// The member that the others wait for; for a learner with several ranks, one of these.
struct Straggler {
  LearnerId id;
  double slowdown = 1;  // its time for a shard, divided by the median of the others
  bool operator==(const Straggler&) const = default;
};

struct Resize {
  MembershipId membership;
  enum class Kind { kPlanned, kRecovery } kind = Kind::kPlanned;
  std::string reason;  // a sentence; empty: nobody gave one
  int from = 0;
  int to = 0;
  double requested_unix_seconds = 0;
  std::optional<double> running_unix_seconds;  // none: it is not running yet
  std::optional<double> longest_pause_seconds;
  std::uint64_t steps_lost = 0;
  std::uint64_t step = 0;
  bool operator==(const Resize&) const = default;
};

struct Problem {
  std::string reason;  // empty: none
  std::string message;
  bool operator==(const Problem&) const = default;
};

// The body of GET /v1/progress.
struct JobProgress {
  std::uint64_t term = 0;
  std::optional<Membership> membership;
  JobState state = JobState::kWaiting;
  std::optional<PlanVersion> plan_accepted;
  std::optional<Tick> tick;
  std::optional<std::uint64_t> step;
  std::optional<Progress::Stats> stats;
  std::vector<LearnerProgress> learners;
  std::optional<Straggler> slowest;  // none: fewer than two report their times
  std::vector<Resize> resizes;       // the last 64
  std::optional<SteadySpeed> speed;  // of the present membership; none: it is not steady yet
  Problem problem;
  std::string parameters_sha256;
  bool operator==(const JobProgress&) const = default;
};

std::string Encode(const JobProgress& progress);

}  // namespace pliant
